// Package models holds language models: the interface, and wrappers that meter
// them, retry them, fall back from one to another and spread them over replicas.
// Subpackages speak to servers (models/openai, models/ollama), bridge to
// langchaingo (models/langchain) and help to test (models/modeltest).
package models
