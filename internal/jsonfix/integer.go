package jsonfix

import (
	"math"
	"strconv"
)

// Integer reads a count, which servers also write as 12.0; what is beyond an
// int64 becomes the nearest one. ok is false if it is no number.
func Integer(s string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case s == "" || math.IsNaN(f) || err != nil && !math.IsInf(f, 0):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}
