// Package sqlite keeps shared budgets in an SQLite file, so that several
// processes spend from one budget and a restart forgets nothing.
//
//	store, err := sqlite.Open("/var/lib/app/budget.db")
//	defer store.Close()
//	shared, err := cost.Share(store, []cost.Scope{{Name: "tenant:42", Budget: cost.Budget{USD: cost.USD(20)}, Every: cost.Day}})
//
// The processes must be on one machine: SQLite's write-ahead log does not work
// over network file systems.
package sqlite
