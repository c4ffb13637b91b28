// Package cost counts money and keeps spending inside budgets.
//
// A call is reserved before it is made, at the most that it can cost, and
// settled at what it did cost:
//
//	m, err := cost.NewMeter("tenant:42", cost.Budget{USD: cost.USD(1)})
//	h, err := m.Reserve(cost.Estimate{Name: "gpt-5", Worst: cost.Spend{USD: cost.Dollars(0.03)}, Priced: true})
//	defer h.Release()
//	// … make the call …
//	row, err := h.Settle(usage, price, nil)
//
// # What is guaranteed
//
// A meter never admits a call that does not fit into what is left of every
// scope around it, so the sum of charges stays within the budget as long as
// no call costs more than it reserved. That holds when the price is known, the
// server honours the output cap, and the input is counted exactly or bounded
// by its bytes, as models.Metered does. A provider that bills more than was
// reserved is charged in full and shows in Row.Over.
//
// # GPU time
//
// Models on one's own GPUs cost time, not tokens. Budget.GPU bounds it like money,
// in GPUs × time: models.OnGPUs says which GPUs answer a model's calls, such a call
// reserves all of them for as long as it may take, is cut when that is over, and
// is charged its share (GPUs). Price.GPUHour gives the time a price beside.
//
// # Budgets that outlive a process
//
// Share makes budgets that a Store keeps: per day or month, per tenant or tag,
// and with cost/sqlite across processes and restarts. A run leases its part
// and spends it in memory; what a killed process held is charged, not lost.
package cost
