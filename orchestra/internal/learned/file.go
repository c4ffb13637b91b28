package learned

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// Schema names the format of network files, and its version.
const Schema = "toolorchestra.network/1"

// FeaturesVersion is that of the features that networks are fitted to. A file
// for another version is refused.
const FeaturesVersion = 1

// ErrFile means that a network file cannot be used.
var ErrFile = errors.New("no network")

// Header is what a network file says of itself.
type Header struct {
	Schema   string            `json:"schema"`
	Features int               `json:"features"`          // version of the features
	Version  string            `json:"version"`           // of these weights
	About    string            `json:"about"`             // where the numbers come from
	Facts    map[string]string `json:"facts,omitempty"`   // of the training run
	Domains  []string          `json:"domains"`           // that the text model tells apart
	Experts  []string          `json:"experts,omitempty"` // that the network is bound to, in order
	Cards    []Card            `json:"cards,omitempty"`   // of those experts
	Prior    Card              `json:"prior"`             // of an expert that nobody measured
	Sizes    Sizes             `json:"sizes"`
}

// Bounds on files.
const (
	maxFile    = 8 << 20
	maxDomains = 64
	maxHidden  = 256
	maxWeight  = 1e6 // so that what comes of weights is finite
)

// Write writes a network: the header as a line of JSON, the text model in 8 bits
// a weight, everything else as 32-bit floats in little-endian order, and a
// checksum.
func Write(w io.Writer, h Header, n *Net) error {
	h.Schema, h.Features = Schema, FeaturesVersion
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(line)
	b.WriteByte('\n')
	for _, v := range n.IDF {
		b.WriteByte(byte(min(max(math.Round(float64(v)*idfSteps), 0), 255)))
	}
	for k := range n.Text.Out {
		top := float32(1e-9)
		for i := k; i < len(n.Text.Weights); i += n.Text.Out {
			top = max(top, n.Text.Weights[i], -n.Text.Weights[i])
		}
		step := top / 127
		_ = binary.Write(&b, binary.LittleEndian, step) // a Buffer never fails
		for i := k; i < len(n.Text.Weights); i += n.Text.Out {
			b.WriteByte(byte(int8(math.Round(float64(n.Text.Weights[i] / step)))))
		}
	}
	for _, p := range n.floats() {
		_ = binary.Write(&b, binary.LittleEndian, p)
	}
	_ = binary.Write(&b, binary.LittleEndian, n.None)
	_ = binary.Write(&b, binary.LittleEndian, crc32.ChecksumIEEE(b.Bytes()))
	_, err = w.Write(b.Bytes())
	return err
}

// idfSteps are the steps of a text feature's weight, per unit.
const idfSteps = 20

// floats are the parameters that files hold as 32-bit floats.
func (n *Net) floats() [][]float32 {
	return [][]float32{n.Text.Bias, n.Second.Weights, n.Answer1.Weights, n.Answer1.Bias, n.Answer2.Weights, n.Answer2.Bias,
		n.State.Weights, n.State.Bias, n.Offer.Weights, n.Value2.Weights, n.Value2.Bias, n.Value3.Weights, n.Value3.Bias, n.Heads.Weights}
}

// ReadFile reads and checks a network. Errors wrap ErrFile, or are those of r.
func ReadFile(r io.Reader) (Header, *Net, error) {
	var h Header
	bad := func(format string, args ...any) (Header, *Net, error) {
		return Header{}, nil, fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
	}
	all, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return h, nil, err
	}
	if len(all) > maxFile {
		return bad("it has more than %d bytes", maxFile)
	}
	line, rest, ok := bytes.Cut(all, []byte("\n"))
	if !ok {
		return bad("it has no header")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return bad("its header: %v", err)
	}
	if err := h.check(); err != nil {
		return bad("%v", err)
	}
	n := New(len(h.Domains), len(h.Experts), h.Sizes)
	want := Buckets + n.Text.Out*(4+Buckets) + 4 + 4
	for _, p := range n.floats() {
		want += 4 * len(p)
	}
	if len(rest) != want {
		return bad("it has %d bytes after its header, not %d: it was cut or changed", len(rest), want)
	}
	sum := len(all) - 4
	if crc32.ChecksumIEEE(all[:sum]) != binary.LittleEndian.Uint32(all[sum:]) {
		return bad("its checksum is wrong: it was cut or changed")
	}
	for i := range n.IDF {
		n.IDF[i] = float32(rest[i]) / idfSteps
	}
	rest = rest[Buckets:]
	float := func() float32 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		return v
	}
	finite := true
	check := func(v float32) float32 {
		finite = finite && v >= -maxWeight && v <= maxWeight
		return v
	}
	for k := range n.Text.Out {
		step := check(float())
		for i := range Buckets {
			n.Text.Weights[i*n.Text.Out+k] = float32(int8(rest[i])) * step
		}
		rest = rest[Buckets:]
	}
	for _, p := range n.floats() {
		for i := range p {
			p[i] = check(float())
		}
	}
	n.None = check(float())
	if !finite {
		return bad("it holds numbers that are not finite, or beyond %.0f", float64(maxWeight))
	}
	return h, n, nil
}

// check says what is wrong with a header.
func (h *Header) check() error {
	z := h.Sizes
	switch {
	case h.Schema != Schema:
		return fmt.Errorf("its schema is %q, and this version reads %q", h.Schema, Schema)
	case h.Features != FeaturesVersion:
		return fmt.Errorf("it was made for version %d of the features, not %d: train it anew", h.Features, FeaturesVersion)
	case len(h.Domains) < 1 || len(h.Domains) > maxDomains:
		return fmt.Errorf("it has %d domains, and 1 to %d are allowed", len(h.Domains), maxDomains)
	case len(h.Experts) > MaxBound || len(h.Cards) != len(h.Experts):
		return fmt.Errorf("it is bound to %d experts and has %d cards: up to %d, and as many cards, are allowed", len(h.Experts), len(h.Cards), MaxBound)
	case min(z.Answer, z.Value1, z.Value2) < 1 || max(z.Answer, z.Value1, z.Value2) > maxHidden:
		return fmt.Errorf("its hidden layers have widths %v, and 1 to %d are allowed", z, maxHidden)
	}
	seen := map[string]bool{}
	for _, e := range h.Experts {
		if e == "" || seen[e] {
			return fmt.Errorf("it is bound to %q twice, or to no name", e)
		}
		seen[e] = true
	}
	for _, c := range append([]Card{h.Prior}, h.Cards...) {
		if err := c.check(len(h.Domains)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Card) check(domains int) error {
	if len(c.Skill) != domains || len(c.Tokens) != domains || len(c.LogTokens) != domains {
		return fmt.Errorf("a card is not for its %d domains", domains)
	}
	ok := c.Mean >= 0 && c.Mean <= 1 && c.Spread >= 0 && c.Spread < 100
	for i := range domains {
		ok = ok && c.Skill[i] >= 0 && c.Skill[i] <= 1 && c.Tokens[i] >= 0 && c.Tokens[i] < 1e9 && c.LogTokens[i] >= 0 && c.LogTokens[i] < 30
	}
	if !ok {
		return errors.New("a card holds numbers out of range")
	}
	return nil
}
