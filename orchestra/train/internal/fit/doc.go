// Package fit fits the learned policy's network to recorded answers, in stages:
// the text model, the second level, the posterior over answers, the value of
// asking, and a policy gradient on top. Each stage learns from what models made
// of rows that they had not seen. All draws are seeded, and sums are taken in a
// fixed order whatever the number of cores, so that a training run can be
// repeated to the bit.
package fit
