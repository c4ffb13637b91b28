package wire

import "encoding/json"

// Lenient is a string for which numbers are taken as well, and all else as empty.
type Lenient string

// UnmarshalJSON takes what there is.
func (l *Lenient) UnmarshalJSON(b []byte) error {
	*l = Lenient(Scalar(b))
	return nil
}

// Scalar returns the text of a JSON string or number, and "" for all else.
func Scalar(b json.RawMessage) string {
	if len(b) == 0 {
		return ""
	}
	switch c := b[0]; {
	case c == '"':
		var s string
		_ = json.Unmarshal(b, &s) // "" if it is broken
		return s
	case c == '-' || '0' <= c && c <= '9':
		return string(b)
	}
	return ""
}

// IsNull reports whether a field is missing or null.
func IsNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }
