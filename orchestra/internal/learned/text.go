package learned

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Buckets is the number of hashed text features.
const Buckets = 1 << 14

// TextFeature is the value of one hashed feature of a text.
type TextFeature struct {
	Index uint16
	Value float32
}

// textScale is the length of every text's feature vector.
const textScale = 3

// Hasher turns texts into hashed features. It is not for concurrent use.
type Hasher struct {
	counts  [Buckets]uint16
	touched []uint16
	out     []TextFeature

	Options int     // of the last text: how many answers it lists, 0 if none
	Length  float32 // of the last text: logarithm of its bytes, about 0 to 2
	Digits  float32 // of the last text: share of its listed answers that begin with a number
}

const (
	fnvOffset uint32 = 2166136261
	fnvPrime  uint32 = 16777619
)

func mix(h, x uint32) uint32 { return (h ^ x) * fnvPrime }

// add counts a feature; kinds of features hash apart.
func (h *Hasher) add(kind, hash uint32) {
	x := mix(mix(fnvOffset, kind), hash)
	x ^= x >> 15
	x *= 0x85ebca6b
	x ^= x >> 13
	i := uint16(x % Buckets)
	if h.counts[i] == 0 {
		h.touched = append(h.touched, i)
	}
	if h.counts[i] < math.MaxUint16 {
		h.counts[i]++
	}
}

// Kinds of features.
const (
	kindWord = iota + 1
	kindPrefix
	kindSuffix
	kindPair
	kindOptions
	kindLength
	kindDigits
)

// Features returns the features of a text: its words, their beginnings and
// ends, pairs of words of the question, and its shape. idf weighs the buckets;
// nil weighs all the same. The result is valid until the next call.
func (h *Hasher) Features(text string, idf []float32) []TextFeature {
	for _, i := range h.touched {
		h.counts[i] = 0
	}
	h.touched = h.touched[:0]
	question := len(text)
	if i := strings.LastIndex(text, "Options:"); i >= 0 {
		question = i
	}
	h.words(text[:question], true)
	h.words(text[question:], false)
	h.shape(text, question)
	h.out = h.out[:0]
	var sum float32
	for _, i := range h.touched {
		w := float32(math.Log1p(float64(h.counts[i])))
		if idf != nil {
			w *= idf[i]
		}
		h.out = append(h.out, TextFeature{i, w})
		sum += float32(w * w)
	}
	if sum > 0 {
		scale := textScale / float32(math.Sqrt(float64(sum)))
		for i := range h.out {
			h.out[i].Value *= scale
		}
	}
	return h.out
}

// words adds the words of a text, and pairs of neighbours.
func (h *Hasher) words(text string, pairs bool) {
	var word, prefix, before uint32
	var last [4]uint32
	n := 0
	end := func() {
		if n == 0 {
			return
		}
		h.add(kindWord, word)
		if n >= 4 {
			h.add(kindPrefix, prefix)
			h.add(kindSuffix, mix(mix(mix(mix(fnvOffset, last[n&3]), last[(n+1)&3]), last[(n+2)&3]), last[(n+3)&3]))
		}
		if pairs && before != 0 {
			h.add(kindPair, mix(before, word))
		}
		before, word, n = word, fnvOffset, 0
	}
	word = fnvOffset
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9'):
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			r = unicode.ToLower(r)
		default:
			end()
			continue
		}
		word = mix(word, uint32(r))
		last[n&3] = uint32(r)
		if n++; n <= 5 {
			prefix = word
		}
	}
	end()
}

// shape adds how many answers a text lists, how long it is, and how many of the
// answers begin with a number.
func (h *Hasher) shape(text string, question int) {
	h.Options, h.Digits = 0, 0
	digits := 0
	for rest := text[question:]; ; {
		mark := [4]byte{'(', 'A' + byte(h.Options), ')', ' '}
		if h.Options >= 26 {
			break
		}
		i := strings.Index(rest, string(mark[:]))
		if i < 0 {
			break
		}
		rest = rest[i+len(mark):]
		h.Options++
		if rest != "" && strings.IndexByte("0123456789-+.$", rest[0]) >= 0 {
			digits++
		}
	}
	if h.Options > 0 {
		h.Digits = float32(digits) / float32(h.Options)
	}
	h.Length = float32(max(math.Log(float64(len(text)+1))-5, 0) / 2)
	h.add(kindOptions, uint32(h.Options))
	h.add(kindLength, uint32(2*math.Log2(float64(question+1))))
	h.add(kindLength, 100+uint32(2*math.Log2(float64(len(text)-question+1))))
	h.add(kindDigits, uint32(4*h.Digits))
}
