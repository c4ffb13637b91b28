package openai

import "encoding/json"

// strict reports whether OpenAI would take the schema in strict mode, in which
// it is obeyed rather than suggested. One that breaks the rules of that mode is
// refused with status 400, so it is better sent without. Other servers obey
// either way.
func strict(schema json.RawMessage) bool {
	var root map[string]any
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && strictSchema(root)
}

// strictSchema checks one schema: known keywords only, and objects closed with
// all properties required.
func strictSchema(s any) bool {
	schema, ok := s.(map[string]any)
	if !ok {
		return false
	}
	for keyword, value := range schema {
		switch keyword {
		case "type", "enum", "const", "title", "description", "$ref", "required", "additionalProperties":
		case "items":
			if !strictSchema(value) {
				return false
			}
		case "anyOf":
			list, ok := value.([]any)
			for _, s := range list {
				ok = ok && strictSchema(s)
			}
			if !ok {
				return false
			}
		case "properties", "$defs":
			set, ok := value.(map[string]any)
			for _, s := range set {
				ok = ok && strictSchema(s)
			}
			if !ok {
				return false
			}
		default:
			return false
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	if schema["type"] != "object" && !ok {
		return true
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if n, _ := name.(string); properties[n] == nil {
			return false
		}
	}
	return schema["additionalProperties"] == false && len(required) == len(properties)
}
