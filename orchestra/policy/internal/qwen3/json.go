package qwen3

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendJSON appends src, which is valid JSON, as Python's
// json.dumps(json.loads(src), ensure_ascii=False) writes it: the form that
// tools had in training. Keys keep their order.
func appendJSON(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c == ',' || c == ':':
			dst = append(dst, c, ' ')
			i++
		case c == '"':
			end := i + 1
			for src[end] != '"' {
				if src[end] == '\\' {
					end++
				}
				end++
			}
			end++
			var s string
			if json.Unmarshal(src[i:end], &s) != nil { // cannot be: src is valid
				s = string(src[i+1 : end-1])
			}
			dst = appendString(dst, s)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(src) && strings.IndexByte("+-.eE0123456789", src[end]) >= 0 {
				end++
			}
			dst = appendNumber(dst, string(src[i:end]))
			i = end
		default: // brackets and literals
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// appendNumber writes integers digit by digit and other numbers as Python's
// repr does.
func appendNumber(dst []byte, n string) []byte {
	if !strings.ContainsAny(n, ".eE") {
		if n == "-0" {
			n = "0"
		}
		return append(dst, n...)
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return append(dst, n...) // out of range: the digits say more than "Infinity"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !strings.Contains(string(dst[at:]), ".") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendString quotes s as Python does: only quotes, backslashes and control
// characters are escaped. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			dst = append(dst, '\\', byte(r))
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			if r < ' ' {
				dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		}
	}
	return append(dst, '"')
}
