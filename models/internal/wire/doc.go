// Package wire is what all clients of model servers have to know of HTTP: what
// was sent when a call failed, how a reply was cut, what a server asks to wait,
// and how to read JSON from servers that are careless about its types.
package wire
