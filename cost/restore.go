package cost

// Restore counts in m what an earlier life of its scope spent: the rows of its
// ledger, and its calls, by the name of what each call reserved under. Scopes
// above m have counted them already and are not told. It is for a meter that
// nothing has spent from yet; Ledger does not list the rows again.
//
// A row that belongs to a call (Row.Call, or Row.ID of the call's own fee)
// counts for that call's name, too, where Budget.PerName limits it.
func (m *Meter) Restore(rows Ledger, calls map[string]string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	made := func(name string) {
		if u := m.subs[name]; u != nil {
			u.made = add(u.made, 1)
		}
	}
	for i := range rows {
		r := &rows[i]
		s := Spend{USD: r.USD, Tokens: r.Usage.Tokens(), GPU: max(r.Usage.GPU, 0)}
		if r.Basis == Unpriced {
			s.Unpriced = 1
		}
		m.spent = m.spent.Add(s)
		if u := m.subs[r.Name]; u != nil {
			u.spent = add(u.spent, r.USD)
		}
		around, inner := calls[r.Call]
		if inner && around != r.Name {
			if u := m.subs[around]; u != nil {
				u.spent = add(u.spent, r.USD)
			}
		}
		if _, own := calls[r.ID]; !own || inner { // a call's own row is the call
			made(r.Name)
		}
	}
	for _, name := range calls {
		m.spent.Calls = add(m.spent.Calls, 1)
		made(name)
	}
}
