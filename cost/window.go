package cost

import (
	"fmt"
	"time"
)

// Period is how often a scope's budget starts anew. Windows follow the
// calendar of the scope's time zone: a day begins at local midnight, in Tokyo
// as in Berlin, and has 23 or 25 hours when the clocks change.
type Period uint8

const (
	Forever Period = iota // one budget, which is never renewed
	Minute
	Hour
	Day
	Month
)

var periodNames = [...]string{"forever", "minute", "hour", "day", "month"}

// String is the name of the period.
func (p Period) String() string {
	if int(p) < len(periodNames) {
		return periodNames[p]
	}
	return fmt.Sprintf("period(%d)", uint8(p))
}

// MarshalText writes the name.
func (p Period) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (p *Period) UnmarshalText(t []byte) error {
	for i, n := range periodNames {
		if n == string(t) {
			*p = Period(i)
			return nil
		}
	}
	return &InvalidError{Field: "period", Value: clip(string(t), 60), Fix: "use one of forever, minute, hour, day, month"}
}

// Window returns when the period that t is in began and when the next one
// does, in loc (nil = UTC). Forever has neither: both are the zero time.
func (p Period) Window(t time.Time, loc *time.Location) (start, end time.Time) {
	if loc == nil {
		loc = time.UTC
	}
	t = t.In(loc)
	// Minutes and hours are counted back from t and not looked up by their name:
	// when clocks go back, an hour of the same name comes twice.
	within := time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
	switch p {
	case Minute:
		start = t.Add(-within)
		return start, start.Add(time.Minute)
	case Hour:
		start = t.Add(-within - time.Duration(t.Minute())*time.Minute)
		return start, start.Add(time.Hour)
	case Day:
		y, m, d := t.Date()
		return midnight(y, m, d, loc), midnight(y, m, d+1, loc)
	case Month:
		y, m, _ := t.Date()
		return midnight(y, m, 1, loc), midnight(y, m+1, 1, loc)
	}
	return time.Time{}, time.Time{}
}

// midnight is the first moment of a day: where the clocks change at midnight,
// there are two of that name, or none.
func midnight(y int, m time.Month, d int, loc *time.Location) time.Time {
	noon := time.Date(y, m, d, 12, 0, 0, 0, loc)
	at := func(t time.Time) time.Time { // midnight by the clock that holds at t
		_, offset := t.Zone()
		return time.Date(y, m, d, 0, 0, 0, 0, time.FixedZone("", offset)).In(loc)
	}
	changed, _ := noon.ZoneBounds()
	if t := at(noon); changed.IsZero() || t.After(changed) {
		return t
	}
	if t := at(changed.Add(-1)); t.Before(changed) {
		return t
	}
	return changed
}
