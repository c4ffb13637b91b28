// Package train learns policies: the rewards and group advantages of
// ToolOrchestra (arXiv 2511.21689, equations 2 and 3), and a trainer in plain Go
// for the embedded network, which reads recorded answers of models
// (orchestra/train/replay), fits how much an answer can be trusted and what
// asking on is worth, and improves that by policy gradients over groups of
// rollouts.
//
// Fit makes Weights from a log; policy.LoadNetwork runs what Weights.Write
// wrote. Calibrate measures a user's own experts. Training is reproducible to
// the bit for one seed.
//
// Not here yet: rollouts with tools, and the hand-off of the 8B policy to a
// distributed trainer.
package train
