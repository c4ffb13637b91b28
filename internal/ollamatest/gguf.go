package ollamatest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Dimensions of the script model. A token's embedding is its own dimension and
// biasDim; a script's number is carried in scriptDim plus that number.
const (
	hidden    = 1024
	headDim   = 64
	heads     = 2
	layers    = 2
	ffn       = 64
	trained   = 40960 // context that the model claims
	biasDim   = hidden - 1
	scriptDim = hidden - 70
	maxScript = 60
)

//go:embed scripts.json
var scriptsJSON []byte

// Script is what the script model says when its marker is the highest one in
// the prompt. Chunks are tokens, each unique in its script.
type Script struct {
	Chunks []string
	Loop   bool // repeat the last chunk for ever; from script 25 on, all of them
}

// Scripts are the built-in scripts by number. Script 0 answers prompts without
// a marker.
var Scripts = sync.OnceValue(func() map[int]Script {
	var m map[int]Script
	if err := json.Unmarshal(scriptsJSON, &m); err != nil {
		panic(err) // the file is part of this package
	}
	return m
})

// Text is the whole output of a script that does not loop.
func (s Script) Text() string {
	var b strings.Builder
	for _, c := range s.Chunks {
		b.WriteString(plain(c))
	}
	return b.String()
}

// plain is a chunk's text: "@b240" is one byte.
func plain(chunk string) string {
	if n, ok := strings.CutPrefix(chunk, "@b"); ok {
		if v, err := strconv.ParseUint(n, 10, 8); err == nil {
			return string([]byte{byte(v)})
		}
	}
	return chunk
}

// GGUF is a tiny qwen3 model, with weights set by hand, that answers a prompt
// with [[Sn]] in it by script n, byte for byte, at any temperature up to 1. Of
// several markers the highest counts. The prompt must end in a line break.
//
// The first layer's attention finds the highest marker (keys of markers are
// turned towards the query the further the higher their number) and adds the
// script's dimension; the output row of a chunk then looks for the chunk before
// it and its script.
func GGUF(scripts map[int]Script) []byte {
	v := newVocab(scripts)
	g := gguf{tensors: v.tensors()}
	g.meta("general.architecture", "qwen3")
	g.meta("general.type", "model")
	g.meta("general.name", "script-model")
	g.meta("general.file_type", uint32(0))
	g.meta("general.quantization_version", uint32(2))
	for name, n := range map[string]uint32{
		"block_count": layers, "context_length": trained, "embedding_length": hidden, "feed_forward_length": ffn,
		"attention.head_count": heads, "attention.head_count_kv": 1, "attention.key_length": headDim, "attention.value_length": headDim,
	} {
		g.meta("qwen3."+name, n)
	}
	g.meta("qwen3.attention.layer_norm_rms_epsilon", float32(1e-6))
	g.meta("qwen3.rope.freq_base", float32(1e6))
	g.meta("tokenizer.ggml.model", "gpt2")
	g.meta("tokenizer.ggml.pre", "qwen2")
	g.meta("tokenizer.ggml.tokens", v.tokens)
	g.meta("tokenizer.ggml.token_type", v.kinds)
	g.meta("tokenizer.ggml.merges", []string{"a b"})
	end, text := int32(v.id["<|im_end|>"]), int32(v.id["<|endoftext|>"])
	g.meta("tokenizer.ggml.eos_token_id", uint32(end))
	g.meta("tokenizer.ggml.eos_token_ids", []int32{end, text})
	g.meta("tokenizer.ggml.padding_token_id", uint32(text))
	g.meta("tokenizer.ggml.bos_token_id", uint32(text))
	g.meta("tokenizer.ggml.add_bos_token", false)
	g.meta("tokenizer.chat_template", "{{ messages }}") // prompts are rendered by the client
	return g.bytes()
}

// vocab holds the tokens, and which follows which in each script.
type vocab struct {
	tokens  []string
	kinds   []int32
	id      map[string]int
	numbers []int // of the scripts, ascending
	next    []transition
}

type transition struct{ prev, script, next int }

// Kinds of tokens.
const (
	normal  = 1
	control = 3
	defined = 4
)

func newVocab(scripts map[int]Script) *vocab {
	v := &vocab{id: map[string]int{}, numbers: slices.Sorted(maps.Keys(scripts))}
	for b := range 256 {
		v.add(letter(byte(b)), normal)
	}
	for _, s := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		v.add(s, control)
	}
	for _, s := range []string{"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"} {
		v.add(s, defined)
	}
	for _, n := range v.numbers {
		if n < 0 || n > maxScript {
			panic(fmt.Sprintf("ollamatest: script %d: use 0 to %d", n, maxScript))
		}
		if n > 0 {
			v.add(marker(n), defined)
		}
	}
	start := v.id[letter('\n')]
	for _, n := range v.numbers {
		s, prev, first := scripts[n], start, start
		for i, c := range s.Chunks {
			id := v.add(letters(plain(c)), normal)
			if i == 0 {
				first = id
			}
			v.next = append(v.next, transition{prev, n, id})
			prev = id
		}
		after := v.id["<|im_end|>"]
		switch {
		case s.Loop && n >= 25:
			after = first
		case s.Loop:
			after = prev
		case prev == start:
			after = v.id["<|endoftext|>"]
		}
		v.next = append(v.next, transition{prev, n, after})
	}
	if len(v.tokens) > scriptDim {
		panic("ollamatest: too many chunks for the model's dimensions")
	}
	return v
}

// add returns the id of a token. Chunks of several scripts share one.
func (v *vocab) add(s string, kind int32) int {
	if id, ok := v.id[s]; ok {
		return id
	}
	v.id[s] = len(v.tokens)
	v.tokens, v.kinds = append(v.tokens, s), append(v.kinds, kind)
	return v.id[s]
}

func marker(n int) string { return "[[S" + strconv.Itoa(n) + "]]" }

// letter is how byte-level BPE writes a byte.
func letter(b byte) string {
	r := rune(b)
	switch {
	case r == 0xad:
		r = 0x143
	case r <= 0x20:
		r += 0x100
	case r >= 0x7f && r <= 0xa0:
		r += 0xa2
	}
	return string(r)
}

func letters(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString(letter(s[i]))
	}
	return b.String()
}

// tensors sets the weights.
func (v *vocab) tensors() []tensor {
	var all []tensor
	weights := func(name string, dims ...int) []float32 {
		n := 1
		for _, d := range dims {
			n *= d
		}
		t := tensor{name: name, dims: dims, data: make([]float32, n)}
		all = append(all, t)
		return t.data
	}
	fill := func(data []float32, x float32) {
		for i := range data {
			data[i] = x
		}
	}
	embedding := weights("token_embd.weight", hidden, len(v.tokens))
	for t := range v.tokens {
		embedding[t*hidden+t], embedding[t*hidden+biasDim] = 1, 1
	}
	const scale = 4
	output := weights("output.weight", hidden, len(v.tokens))
	for _, x := range v.next {
		if x.script == 0 {
			output[x.next*hidden+x.prev] = 1.5 * scale
			continue
		}
		output[x.next*hidden+x.prev] = scale
		output[x.next*hidden+scriptDim+x.script] = scale
	}
	fill(weights("output_norm.weight", hidden), 1)
	for l := range layers {
		p := fmt.Sprintf("blk.%d.", l)
		fill(weights(p+"attn_norm.weight", hidden), 1)
		q := weights(p+"attn_q.weight", hidden, heads*headDim)
		key := weights(p+"attn_k.weight", hidden, headDim)
		value := weights(p+"attn_v.weight", hidden, headDim)
		out := weights(p+"attn_output.weight", heads*headDim, hidden)
		fill(weights(p+"attn_q_norm.weight", headDim), 20)
		fill(weights(p+"attn_k_norm.weight", headDim), 1)
		fill(weights(p+"ffn_norm.weight", hidden), 1)
		weights(p+"ffn_gate.weight", hidden, ffn)
		weights(p+"ffn_up.weight", hidden, ffn)
		weights(p+"ffn_down.weight", ffn, hidden)
		if l > 0 {
			continue
		}
		for h := range heads {
			q[(h*headDim+31)*hidden+biasDim] = 1 // the slowest pair of the rotary embedding
		}
		norm := math.Sqrt(hidden / 2) // of each nonzero after the norm
		for rank, n := range v.numbers {
			if n == 0 {
				continue
			}
			t := v.id[marker(n)]
			c := 0.3 + 0.69*float64(rank+1)/float64(len(v.numbers)+1)
			key[31*hidden+t], key[30*hidden+t] = float32(c), float32(math.Sqrt(1-c*c))
			value[n*hidden+t] = float32(1 / norm)
			out[(scriptDim+n)*(heads*headDim)+n] = 1 // of the first head
		}
	}
	return all
}

type tensor struct {
	name string
	dims []int // the fastest first
	data []float32
}

// gguf writes the file format, version 3.
type gguf struct {
	entries int
	head    bytes.Buffer // the metadata
	tensors []tensor
}

func put(w io.Writer, v any) { _ = binary.Write(w, binary.LittleEndian, v) } // into memory: never fails

func putString(w io.Writer, s string) {
	put(w, uint64(len(s)))
	_, _ = io.WriteString(w, s)
}

// meta adds a metadata entry.
func (g *gguf) meta(key string, value any) {
	g.entries++
	w := &g.head
	putString(w, key)
	switch v := value.(type) {
	case uint32:
		put(w, uint32(4))
		put(w, v)
	case float32:
		put(w, uint32(6))
		put(w, v)
	case bool:
		put(w, uint32(7))
		put(w, v)
	case string:
		put(w, uint32(8))
		putString(w, v)
	case []string:
		put(w, [2]uint32{9, 8})
		put(w, uint64(len(v)))
		for _, s := range v {
			putString(w, s)
		}
	case []int32:
		put(w, [2]uint32{9, 5})
		put(w, uint64(len(v)))
		put(w, v)
	default:
		panic(fmt.Sprintf("ollamatest: metadata of type %T", value))
	}
}

const alignment = 32

func pad(b *bytes.Buffer) {
	for b.Len()%alignment != 0 {
		b.WriteByte(0)
	}
}

func (g *gguf) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3))
	put(&b, [2]uint64{uint64(len(g.tensors)), uint64(g.entries)})
	b.Write(g.head.Bytes())
	offset := uint64(0)
	for _, t := range g.tensors {
		putString(&b, t.name)
		put(&b, uint32(len(t.dims)))
		for _, d := range t.dims {
			put(&b, uint64(d))
		}
		put(&b, uint32(0)) // float32
		put(&b, offset)
		offset += uint64(4*len(t.data)+alignment-1) / alignment * alignment
	}
	pad(&b)
	for _, t := range g.tensors {
		put(&b, t.data)
		pad(&b)
	}
	return b.Bytes()
}
