package cost_test

import (
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Around every change of clocks, days and months follow each other without gap
// or overlap, so that no moment has two budgets.
func TestWindowsFollowEachOtherEverywhere(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/Asuncion", "America/Santiago", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut",
		"Asia/Tehran", "Asia/Amman", "Asia/Gaza", "Asia/Kolkata", "Asia/Tokyo", "Atlantic/Azores", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Chatham", "America/Scoresbysund", "Antarctica/Troll", "Africa/Monrovia", "Pacific/Kwajalein", "America/Caracas", "Asia/Pyongyang"} {
		loc := zone(t, name)
		for at := time.Date(1971, 1, 1, 0, 0, 0, 0, loc); at.Year() < 2038; {
			_, change := at.ZoneBounds()
			if change.IsZero() {
				break
			}
			at = change
			for _, p := range []cost.Period{cost.Day, cost.Month} {
				for _, d := range []time.Duration{-25 * time.Hour, -2 * time.Hour, -time.Hour, -30 * time.Minute, -1, 0, 1, 30 * time.Minute, time.Hour, 2 * time.Hour, 25 * time.Hour} {
					x := change.Add(d)
					start, end := p.Window(x, loc)
					if x.Before(start) || !x.Before(end) {
						t.Errorf("%s: %v of %v: %v to %v", name, p, x, start, end)
						continue
					}
					if next, _ := p.Window(end, loc); !next.Equal(end) {
						t.Errorf("%s: %v of %v ends at %v, and the next begins at %v", name, p, x, end, next)
					}
					if s, e := p.Window(end.Add(-1), loc); !s.Equal(start) || !e.Equal(end) {
						t.Errorf("%s: %v of %v: %v to %v, and at its end %v to %v", name, p, x, start, end, s, e)
					}
				}
			}
		}
	}
}
