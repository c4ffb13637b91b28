// Package models holds language models: the interface, and wrappers that meter
// and retry them. Subpackages speak to servers (models/openai) and help to test
// (models/modeltest).
package models
