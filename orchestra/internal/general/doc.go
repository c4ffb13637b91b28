// Package general is the part of the embedded policy that chooses among tools,
// experts and the end: a feature vector for each candidate, a small network that
// scores it, and a reading of texts that tells what a task needs and what a tool
// is for. Of a name it knows what its words say.
package general
