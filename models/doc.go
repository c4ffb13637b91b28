// Package models holds language models: the interface, and wrappers that meter
// them, retry them, and fall back from one to another. Subpackages speak to
// servers (models/openai) and help to test (models/modeltest).
package models
