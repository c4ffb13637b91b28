package jsonfix

import "encoding/json"

// Storable returns raw if it is JSON or empty, and else a JSON string of it, so
// that what a model really wrote can be marshalled.
func Storable(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return nil // cannot happen: strings always marshal
	}
	return text
}
