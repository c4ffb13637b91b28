package cost

import (
	"errors"
	"fmt"
	"time"
)

// Media counts tokens that are not text.
type Media struct {
	Audio int64 `json:"audio,omitempty"`
	Image int64 `json:"image,omitempty"`
	Video int64 `json:"video,omitempty"`
}

func (m *Media) counts() [3]int64 { return [...]int64{m.Audio, m.Image, m.Video} }

// Usage is what a call consumed. Known false means that nobody said, which is
// not the same as nothing. Parts of one whole do not overlap, but for the cached
// part of InputMedia, which is in CacheRead as well.
type Usage struct {
	Input        int64         `json:"input,omitempty"`          // input tokens, cached ones included
	CacheRead    int64         `json:"cache_read,omitempty"`     // part of Input
	CacheWrite   int64         `json:"cache_write,omitempty"`    // part of Input: written for five minutes, or for a time that nobody stated
	CacheWrite1h int64         `json:"cache_write_1h,omitempty"` // part of Input: written for an hour
	InputMedia   Media         `json:"input_media,omitzero"`     // part of Input, cached ones included
	CacheMedia   Media         `json:"cache_media,omitzero"`     // part of CacheRead and of InputMedia
	Output       int64         `json:"output,omitempty"`         // output tokens, reasoning included
	Reasoning    int64         `json:"reasoning,omitempty"`      // part of Output
	Citations    int64         `json:"citations,omitempty"`      // part of Output
	OutputMedia  Media         `json:"output_media,omitzero"`    // part of Output
	Requests     int64         `json:"requests,omitempty"`       // calls, where they are priced
	Searches     int64         `json:"searches,omitempty"`       // web searches that the provider made
	Images       int64         `json:"images,omitempty"`         // images made
	Wall         time.Duration `json:"wall,omitempty"`           // nanoseconds in JSON
	GPU          time.Duration `json:"gpu,omitempty"`            // GPU seconds: GPUs × time; nanoseconds in JSON
	Service      string        `json:"service,omitempty"`        // the service tier that served the call, as the provider says it: "batch", "flex", "priority"; else the ordinary one
	Known        bool          `json:"known,omitempty"`
	Estimated    bool          `json:"estimated,omitempty"` // counted by us, not by the provider
	USD          *Amount       `json:"usd,omitempty"`       // what the provider says it charged
}

// Tokens is the number of input and output tokens that are priced: parts of the
// input that exceed it are believed before it is.
func (u Usage) Tokens() int64 { return add(max(u.Input, u.cached()), max(u.Output, 0)) }

// cached is the sum of the parts of Input that a cache has to do with.
func (u *Usage) cached() int64 {
	return add(add(max(u.CacheRead, 0), max(u.CacheWrite, 0)), max(u.CacheWrite1h, 0))
}

// clamped returns u with parts no larger than their wholes and nothing
// negative, and whether it was so already.
func (u *Usage) clamped() (Usage, bool) {
	v := *u
	for _, n := range []*int64{&v.Input, &v.CacheRead, &v.CacheWrite, &v.CacheWrite1h, &v.Output, &v.Reasoning, &v.Citations,
		&v.InputMedia.Audio, &v.InputMedia.Image, &v.InputMedia.Video, &v.CacheMedia.Audio, &v.CacheMedia.Image, &v.CacheMedia.Video,
		&v.OutputMedia.Audio, &v.OutputMedia.Image, &v.OutputMedia.Video,
		&v.Requests, &v.Searches, &v.Images, (*int64)(&v.Wall), (*int64)(&v.GPU)} {
		*n = max(*n, 0)
	}
	// The parts were reported one by one, so they are believed before the sum.
	v.Input = max(v.Input, v.cached())
	within(v.Input, &v.InputMedia.Audio, &v.InputMedia.Image, &v.InputMedia.Video)
	v.CacheMedia = Media{min(v.CacheMedia.Audio, v.InputMedia.Audio), min(v.CacheMedia.Image, v.InputMedia.Image), min(v.CacheMedia.Video, v.InputMedia.Video)}
	within(v.CacheRead, &v.CacheMedia.Audio, &v.CacheMedia.Image, &v.CacheMedia.Video)
	within(v.Output, &v.Reasoning, &v.Citations, &v.OutputMedia.Audio, &v.OutputMedia.Image, &v.OutputMedia.Video)
	return v, v == *u
}

// within cuts parts, in their order, to what the whole has room for.
func within(whole int64, parts ...*int64) {
	for _, n := range parts {
		*n = min(*n, whole)
		whole -= *n
	}
}

// Basis says where the figure of a ledger row comes from.
type Basis uint8

const (
	Unpriced  Basis = iota // the price is unknown; the row's USD is a lower bound
	Measured               // reported usage at the stated price
	Provider               // the amount that the provider reported
	Estimated              // usage counted by us, for instance of a cut stream
	Reserved               // nothing is known of the usage: the whole hold is charged
)

var basisNames = [...]string{"unpriced", "measured", "provider", "estimated", "reserved"}

// String is the name of the basis in ledgers and trajectories.
func (b Basis) String() string {
	if int(b) < len(basisNames) {
		return basisNames[b]
	}
	return fmt.Sprintf("basis(%d)", uint8(b))
}

// MarshalText writes the name.
func (b Basis) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (b *Basis) UnmarshalText(t []byte) error {
	for i, n := range basisNames {
		if n == string(t) {
			*b = Basis(i)
			return nil
		}
	}
	return &InvalidError{Field: "basis", Value: string(t), Fix: "use one of unpriced, measured, provider, estimated, reserved"}
}

var (
	// ErrUnpriced means that the price of a call is unknown.
	ErrUnpriced = errors.New("cost: price unknown")
	// ErrInconsistent means that a usage contradicts itself.
	ErrInconsistent = errors.New("cost: inconsistent usage")
)
