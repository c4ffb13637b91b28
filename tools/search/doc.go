// Package search finds documents on this machine and quotes answers from them,
// without a network, a model or a server.
//
// Index keeps documents in SQLite, in memory or in a file, and finds them by
// their words; it is a tools.Retriever. Reader is a tool that answers a
// question with the sentences of the found documents that fit it best.
package search
