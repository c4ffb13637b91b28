package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds the lines and the data of one event.
const maxEvent = 16 << 20

// errEventTooLong means that a line or event is longer than maxEvent.
var errEventTooLong = errors.New("an event of the stream is longer than 16 MiB")

// events reads server-sent events. Lines end in \n or \r\n.
type events struct {
	r    *bufio.Reader
	line []byte // reused
	data []byte // reused
	all  int    // number of lines so far
}

func newEvents(r io.Reader) *events {
	return &events{r: bufio.NewReaderSize(r, 16<<10), data: make([]byte, 0, 1<<10)}
}

// next returns the name and data of the next event that has data; data is valid
// until the next call. The error is io.EOF at a clean end, errEventTooLong, or
// the reader's. An event that the end cut off before its empty line is returned
// together with the error: it may lack its rest.
func (e *events) next() (name string, data []byte, err error) {
	e.data = e.data[:0]
	has := false
	for {
		line, err := e.readLine()
		if err != nil && len(line) == 0 {
			if has {
				return name, e.data, err
			}
			return "", nil, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if has {
				return name, e.data, nil
			}
			name = ""
		case line[0] == '{' && !has:
			// Not an event, but servers and proxies write bare error objects into
			// streams.
			return name, line, err
		case string(field) == "data":
			if has {
				e.data = append(e.data, '\n')
			}
			has = true
			if len(e.data)+len(value) > maxEvent {
				return "", nil, errEventTooLong
			}
			e.data = append(e.data, value...)
		case string(field) == "event":
			name = string(value)
		}
		if err != nil {
			if has {
				return name, e.data, err
			}
			return "", nil, err
		}
	}
}

// readLine returns a line without its end; it is valid until the next call.
// With an error it returns what came before.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if len(e.line)+len(part) > maxEvent+16 {
			return nil, errEventTooLong
		}
		e.line = append(e.line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		line := e.line
		if e.all == 0 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		e.all++
		if err == nil {
			line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		}
		return line, err
	}
}
