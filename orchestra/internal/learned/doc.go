// Package learned is the arithmetic of the learned policy: a text model, a
// posterior over the answers seen, and the value of asking one more expert. It
// knows nothing of runs: package policy translates a State into a Task of this
// package to decide, and package train does the same with recorded answers to
// learn. Products are rounded before they are summed up, so that results do not
// depend on whether a compiler fuses them.
package learned
