package cost_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Windows begin at local midnight and not at that of UTC (BerriAI/litellm
// 34896 and 38938: nine hours late in Tokyo).
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name              string
		every             cost.Period
		zone              string
		now, start, until string
	}{
		{"day in Tokyo", cost.Day, "Asia/Tokyo", "2026-03-01T16:00:00Z", "2026-03-02T00:00:00+09:00", "2026-03-03T00:00:00+09:00"},
		{"its last moment", cost.Day, "Asia/Tokyo", "2026-03-01T14:59:59Z", "2026-03-01T00:00:00+09:00", "2026-03-02T00:00:00+09:00"},
		{"its first moment", cost.Day, "Asia/Tokyo", "2026-03-01T15:00:00Z", "2026-03-02T00:00:00+09:00", "2026-03-03T00:00:00+09:00"},
		{"month in Tokyo", cost.Month, "Asia/Tokyo", "2026-12-31T15:00:00Z", "2027-01-01T00:00:00+09:00", "2027-02-01T00:00:00+09:00"},
		{"day of 23 hours", cost.Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"day of 25 hours", cost.Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"first hour of a name", cost.Hour, "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"},
		{"second hour of it", cost.Hour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		{"hour off by half", cost.Hour, "Asia/Kolkata", "2026-05-05T10:10:00Z", "2026-05-05T15:00:00+05:30", "2026-05-05T16:00:00+05:30"},
		{"minute", cost.Minute, "UTC", "2026-05-05T10:10:59.999999999Z", "2026-05-05T10:10:00Z", "2026-05-05T10:11:00Z"},
		{"leap month", cost.Month, "UTC", "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"midnight that comes twice", cost.Day, "America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		{"midnight that is skipped", cost.Day, "America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"},
	} {
		now := at(t, c.now)
		start, end := c.every.Window(now, zone(t, c.zone))
		if !start.Equal(at(t, c.start)) || !end.Equal(at(t, c.until)) {
			t.Errorf("%s: %v to %v", c.name, start, end)
		}
		if now.Before(start) || !now.Before(end) {
			t.Errorf("%s: %v is not within %v to %v", c.name, now, start, end)
		}
	}
	if s, e := cost.Forever.Window(time.Now(), nil); !s.IsZero() || !e.IsZero() {
		t.Error(s, e)
	}
}

// Whatever the time and the zone, a moment is in its window, and all moments of
// a window have the same.
func FuzzWindow(f *testing.F) {
	zones := []*time.Location{nil, zone(f, "Asia/Tokyo"), zone(f, "Europe/Berlin"), zone(f, "America/Santiago"), zone(f, "Asia/Kolkata"), zone(f, "America/Havana")}
	f.Add(int64(1_790_000_000), uint8(1), uint8(3))
	f.Add(int64(1_761_355_800), uint8(2), uint8(2))
	f.Add(int64(1_757_217_600), uint8(3), uint8(2)) // a day without midnight
	f.Add(int64(1_793_511_000), uint8(5), uint8(2)) // a day with two
	f.Fuzz(func(t *testing.T, sec int64, z, p uint8) {
		if sec < 0 || sec > 4e9 {
			return // zones before 1970 had odd seconds
		}
		loc, every := zones[int(z)%len(zones)], cost.Minute+cost.Period(p%4)
		now := time.Unix(sec, 0)
		start, end := every.Window(now, loc)
		if now.Before(start) || !now.Before(end) {
			t.Fatalf("%v %v: %v is not within %v to %v", every, loc, now, start, end)
		}
		if s, e := every.Window(start, loc); !s.Equal(start) || !e.Equal(end) {
			t.Fatalf("%v %v: the window of %v is %v to %v, that of its start %v to %v", every, loc, now, start, end, s, e)
		}
		if s, _ := every.Window(end, loc); !s.Equal(end) {
			t.Fatalf("%v %v: after %v to %v comes %v", every, loc, start, end, s)
		}
	})
}

func TestPeriodText(t *testing.T) {
	for p := cost.Forever; p <= cost.Month; p++ {
		text, _ := p.MarshalText()
		var q cost.Period
		if err := q.UnmarshalText(text); err != nil || q != p {
			t.Errorf("%s: %v, %v", text, q, err)
		}
	}
	var p cost.Period
	if err := p.UnmarshalText([]byte("fortnight")); err == nil {
		t.Error("a fortnight is no period")
	}
}
