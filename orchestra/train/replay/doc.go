// Package replay turns recorded answers of models into a world to learn and to
// measure in: asking an expert reveals the answer that it really gave and costs
// the tokens that it really used. It reads logs, scores policies by accuracy and
// cost as routing benchmarks do, and holds the baselines that a learned policy
// has to beat.
package replay
