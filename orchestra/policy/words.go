package policy

import (
	"math"
	"slices"
	"unicode"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// match says how much of a tool's own words the task contains: their number over
// the square root of that of all its words, so that one word of a short
// description tells about as much as two of a long one; and half of the share of
// its name's words.
func (sc *scene) match(t *tools.Spec) float32 {
	sc.own = sc.own[:0]
	add := func(h uint32) {
		if !slices.Contains(sc.own, h) {
			sc.own = append(sc.own, h)
		}
	}
	eachWord(t.Name, add)
	names := len(sc.own)
	eachWord(t.Description, add)
	var hits, named float64
	for i, h := range sc.own {
		if sc.words[h] {
			hits++
			if i < names {
				named++
			}
		}
	}
	if hits == 0 {
		return 0
	}
	return float32(min(hits/math.Sqrt(float64(len(sc.own)))+named/float64(max(names, 1))/2, 1.5))
}

// eachWord calls f with a hash of each of a text's words of at least four
// letters, cut to six so that most inflections agree. Shorter ones say little, as
// do those that any text may have.
func eachWord(text string, f func(hash uint32)) {
	hashWords(text, func(h uint32) {
		if !slices.Contains(common, h) {
			f(h)
		}
	})
}

func hashWords(text string, f func(hash uint32)) {
	const start, prime = 2166136261, 16777619
	h, n := uint32(start), 0
	end := func() {
		if n >= 4 {
			f(h)
		}
		h, n = start, 0
	}
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if n++; n <= 6 {
			h = (h ^ uint32(unicode.ToLower(r))) * prime
		}
	}
	end()
}

// common are the hashes of words that any text may have.
var common = func() (list []uint32) {
	hashWords("about also been does each find from give given have into many more much must need needs only return same some such tell than that their "+
		"them then there these they this those using want were what when where which will with would your", func(h uint32) { list = append(list, h) })
	return list
}()
