package qwen3

import (
	"strings"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

type kind uint8

const (
	prose kind = iota
	thinkStart
	thinkEnd
	block // of calls
)

// piece is a part of an output.
type piece struct {
	kind  kind
	raw   string
	calls []models.ToolCall
	bad   []string // calls that cannot be read
	cut   bool     // the output ends inside of it
}

// scanner cuts an output into pieces, from left to right. Tags inside the JSON
// of a call are part of the call, so blocks are read before thinking is looked
// for.
type scanner struct {
	s      string
	known  func(string) bool
	pieces []piece
	from   int  // where the prose began that is not a piece yet
	blocks int  // calls so far; those of the first thinking don't count
	ended  bool // a thinkEnd was seen
}

func (sc *scanner) run() {
	for i := 0; ; {
		lt := strings.IndexByte(sc.s[i:], '<')
		if lt < 0 {
			sc.add(len(sc.s), len(sc.s), nil)
			return
		}
		i += lt
		switch rest := sc.s[i:]; {
		case strings.HasPrefix(rest, thinkOpen):
			i = sc.add(i, i+len(thinkOpen), &piece{kind: thinkStart})
		case strings.HasPrefix(rest, thinkClose):
			i = sc.add(i, i+len(thinkClose), &piece{kind: thinkEnd})
			if !sc.ended {
				sc.ended, sc.blocks = true, 0
			}
		case strings.HasPrefix(rest, callClose): // of a call that was complete before
			i = sc.add(i, i+len(callClose), nil)
		case strings.HasPrefix(rest, callOpen), strings.HasPrefix(rest, functionOpen):
			if pc, end := sc.block(i); pc != nil {
				i = sc.add(i, end, pc)
				sc.blocks += len(pc.calls) + len(pc.bad)
			} else {
				i++
			}
		default:
			i++
		}
	}
}

// add ends the prose at i and adds the piece that ends at end, if any.
func (sc *scanner) add(i, end int, pc *piece) int {
	if i > sc.from {
		sc.pieces = append(sc.pieces, piece{raw: sc.s[sc.from:i]})
	}
	if pc != nil {
		pc.raw = sc.s[i:end]
		sc.pieces = append(sc.pieces, *pc)
	}
	sc.from = end
	return end
}

// starts reports whether the output starts inside of thinking (the prompt
// opened it), and the index of the piece that opened the thinking that never
// ends.
func (sc *scanner) starts() (inside bool, open int) {
	open = len(sc.pieces)
	first := true
	for i := range sc.pieces {
		switch sc.pieces[i].kind {
		case thinkStart:
			if open == len(sc.pieces) {
				open = i
			}
			first = false
		case thinkEnd:
			inside = inside || first
			open, first = len(sc.pieces), false
		}
	}
	return inside, open
}

// block reads the block of calls that begins at i. It returns nil if there is
// none and the tag is prose.
func (sc *scanner) block(i int) (*piece, int) {
	s := sc.s
	tagged := strings.HasPrefix(s[i:], callOpen)
	at := i
	if tagged {
		at = i + len(callOpen) + blank(s[i+len(callOpen):])
	}
	switch {
	case strings.HasPrefix(s[at:], functionOpen):
		if name, _ := attribute(s[at:], functionOpen); !tagged && !sc.known(name) {
			return nil, 0
		}
		if sc.blocks >= MaxCalls {
			return sc.rest(i)
		}
		if c, n, whole := function(s[at:]); whole {
			return &piece{kind: block, calls: []models.ToolCall{c}}, sc.closed(at + n)
		}
	case sc.blocks >= MaxCalls:
		return sc.rest(i)
	case strings.HasPrefix(s[at:], "{"), strings.HasPrefix(s[at:], "["):
		pc := &piece{kind: block}
		for {
			raw, n := strict(s[at:])
			if n == 0 {
				break
			}
			at = at + n
			for _, o := range objects(raw) {
				if c, ok := call(o); ok && sc.blocks+len(pc.calls) < MaxCalls {
					pc.calls = append(pc.calls, c)
				} else {
					pc.bad = append(pc.bad, string(o))
				}
			}
			at += blank(s[at:])
			if !strings.HasPrefix(s[at:], "{") {
				return pc, sc.closed(at)
			}
		}
		if len(pc.calls) == 0 && len(pc.bad) == 0 {
			break
		}
		broken, end := sc.broken(at)
		pc.calls, pc.bad, pc.cut = append(pc.calls, broken.calls...), append(pc.bad, broken.bad...), broken.cut
		return pc, end
	case !sc.meant(at):
		return nil, 0
	}
	return sc.broken(at)
}

// broken reads a body at i that is not what it should be.
func (sc *scanner) broken(i int) (*piece, int) {
	end := sc.tag(i)
	body := strings.TrimSpace(sc.s[i:end])
	pc := &piece{kind: block, cut: end == len(sc.s)}
	v, err := jsonfix.Read(body)
	if err == nil && !v.Truncated {
		if c, ok := call(v.JSON); ok && !strings.HasPrefix(body, functionOpen) {
			pc.calls, pc.cut = []models.ToolCall{c}, false
			return pc, sc.closed(end)
		}
	}
	pc.cut = pc.cut || err == nil && v.Truncated
	if body == "" {
		body = callOpen
	}
	pc.bad = []string{body}
	return pc, sc.closed(end)
}

// meant reports whether what follows a tag at i is no JSON and yet meant as a
// call: it has an end, or looks like the begin of one.
func (sc *scanner) meant(i int) bool {
	if strings.HasPrefix(sc.s[sc.tag(i):], callClose) || i == len(sc.s) {
		return true
	}
	return strings.HasPrefix(sc.s[i:], "```") || sc.s[i] == '"'
}

// rest is a piece of all that comes after too many calls, up to the end of
// thinking.
func (sc *scanner) rest(i int) (*piece, int) {
	end := len(sc.s)
	if n := strings.Index(sc.s[i:], thinkClose); n >= 0 {
		end = i + n
	}
	return &piece{kind: block, bad: []string{sc.s[i:end]}}, end
}

// tag is where the next tag is that no broken call goes beyond.
func (sc *scanner) tag(i int) int {
	for {
		lt := strings.IndexByte(sc.s[i:], '<')
		if lt < 0 {
			return len(sc.s)
		}
		i += lt
		for _, t := range []string{callClose, callOpen, thinkClose} {
			if strings.HasPrefix(sc.s[i:], t) {
				return i
			}
		}
		i++
	}
}

// closed skips the closing tag at i, and brackets too many before it.
func (sc *scanner) closed(i int) int {
	end := i
	for end < len(sc.s) && strings.IndexByte("}], \t\r\n", sc.s[end]) >= 0 {
		end++
	}
	if strings.HasPrefix(sc.s[end:], callClose) {
		return end + len(callClose)
	}
	return i
}

// blank counts the white space that s starts with.
func blank(s string) int { return len(s) - len(strings.TrimLeft(s, " \t\r\n")) }
