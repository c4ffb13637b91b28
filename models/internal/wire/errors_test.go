package wire

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			ms, after, date string
			want            time.Duration
		}{
			{"", "", "", 0},
			{"", "soon", "", 0},
			{"", "-5", "", 0},
			{"", "NaN", "", 0},
			{"x", " 3 ", "", 3 * time.Second},
			{"", "1e300", "", 365 * 24 * time.Hour},
			{"", "Inf", "", 365 * 24 * time.Hour},
			{"", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), "", time.Minute},
			{"", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat), "", 0},
			{"", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(59 * time.Minute).UTC().Format(http.TimeFormat), time.Minute},
		} {
			if got := RetryAfter(http.Header{"Retry-After-Ms": {tt.ms}, "Retry-After": {tt.after}, "Date": {tt.date}}); got != tt.want {
				t.Errorf("%q %q %q: got %s, want %s", tt.ms, tt.after, tt.date, got, tt.want)
			}
		}
	})
}

func TestRetryAfterAlone(t *testing.T) {
	for in, want := range map[string]time.Duration{"": 0, "soon": 0, "-3": 0, "NaN": 0, "1e99": 365 * 24 * time.Hour, " 0.5 ": 500 * time.Millisecond, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := RetryAfter(http.Header{"Retry-After": {in}}); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	got := Readable("a\x00\x1b[31m\n\tb\xff"+strings.Repeat("é", 5000), "")
	if !strings.HasPrefix(got, "a [31m b\uFFFDéé") || len(got) > 2100 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes, %.30q … %q", len(got), got, got[len(got)-5:])
	}
}
