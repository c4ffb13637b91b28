package jsonfix

import (
	"strings"
	"unicode/utf8"
)

// object keeps its members in order.
type object struct {
	members []member
	index   map[string]int
}

type member struct {
	key   string
	value any
}

// set adds a member; a key that is there gets the new value.
func (o *object) set(key string, v any) {
	if i, ok := o.index[key]; ok {
		o.members[i].value = v
		return
	}
	if o.index == nil {
		o.index = map[string]int{}
	}
	o.index[key] = len(o.members)
	o.members = append(o.members, member{key, v})
}

// lit is JSON as it is written: a number, true, false or null.
type lit string

// appendValue writes an *object, []any, string or lit as JSON.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.key), ':')
			b = appendValue(b, m.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	default:
		return append(b, v.(lit)...)
	}
}

const hex = "0123456789abcdef"

// appendString writes s as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s { // invalid UTF-8 becomes U+FFFD, as encoding/json has it
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			if i := strings.IndexByte("\b\f\n\r\t", byte(r)); i >= 0 {
				b = append(b, '\\', "bfnrt"[i])
			} else {
				b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
			}
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
