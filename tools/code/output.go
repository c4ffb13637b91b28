package code

import (
	"strings"
	"unicode/utf8"
)

// output is what a program prints, up to a cap.
type output struct {
	b   []byte
	cap int
	cut bool // something did not fit
}

func (o *output) empty() bool { return len(o.b) == 0 && !o.cut }

// write keeps what fits. After that nothing is kept, or the text would have a
// hole.
func (o *output) write(p []byte) {
	if o.cut {
		return
	}
	if room := o.cap - len(o.b); len(p) > room {
		for room > 0 && !utf8.RuneStart(p[room]) {
			room--
		}
		p, o.cut = p[:room], true
	}
	o.b = append(o.b, p...)
}

// String is the output in valid UTF-8.
func (o *output) String() string { return strings.ToValidUTF8(string(o.b), "\uFFFD") }
