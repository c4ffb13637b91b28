package ollama

import (
	"bytes"
	"errors"
	"io"
)

const (
	maxReply  = 64 << 20 // bytes of a reply, whole or streamed
	firstRead = 8 << 10  // bytes of a buffer at the start
	keepBytes = 1 << 20  // larger buffers are not kept
)

// errTooLong means that a reply is longer than maxReply.
var errTooLong = errors.New("the reply is longer than 64 MiB")

// lines reads a stream line by line. It has to be reset before use.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int // what was read and not returned
	seen       int // how far of that there is no line end
	left       int // bytes that may yet come
	err        error
}

// reset starts anew with r and the buffer that is there.
func (l *lines) reset(r io.Reader) {
	buf := l.buf
	if cap(buf) == 0 || cap(buf) > keepBytes {
		buf = make([]byte, firstRead)
	}
	*l = lines{r: r, buf: buf[:cap(buf)], left: maxReply}
}

// next returns the next line without its end; it is valid until the next call.
// The error is io.EOF at a clean end, errTooLong, or the reader's; what came
// after the last line end is returned with it.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.start+l.seen:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.start+l.seen+i]
			l.start += l.seen + i + 1
			l.seen = 0
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		l.seen = l.end - l.start
		if l.err != nil {
			line := l.buf[l.start:l.end]
			l.start, l.seen = l.end, 0
			return line, l.err
		}
		l.fill()
	}
}

// fill reads once more, or notes why not.
func (l *lines) fill() {
	if l.start > 0 && (l.end == len(l.buf) || l.start == l.end) {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	if l.end == len(l.buf) {
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.left -= n
		l.err = err
		switch {
		case l.left < 0:
			l.start, l.end, l.seen, l.err = 0, 0, 0, errTooLong
			return
		case n > 0 || err != nil:
			return
		}
	}
	l.err = io.ErrNoProgress
}
