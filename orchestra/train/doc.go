// Package train learns policies: the rewards and group advantages of
// ToolOrchestra (arXiv 2511.21689, equations 2 and 3), and trainers in plain Go for
// the embedded policy. It has two parts, and a trainer for each.
//
// Fit learns whom to ask: it reads recorded answers of models
// (orchestra/train/replay), fits how much an answer can be trusted and what asking
// on is worth, and improves that by policy gradients over groups of rollouts. It
// makes Weights, which policy.LoadNetwork runs. Calibrate measures a user's own
// experts.
//
// GRPO learns when to search, compute, call a tool, ask and stop, on tasks of the
// application and through its ordinary orchestrator; Imitate does so from a teacher,
// such as a large model. They make General, which policy.WithGeneral takes.
//
//	what                   written by            read by
//	network of experts     Weights.Write         policy.LoadNetwork, policy.ReadNetwork, Read
//	general weights        General.Write         policy.WithGeneral, ReadGeneral
//	cards of experts       encoding/json         policy.WithCards
//	rollouts               WriteRollouts         ReadRollouts
//
// Fit is reproducible to the bit for one seed on machines of one architecture; GRPO
// and Imitate are so if the tasks play alike again.
//
// Rollout is a run as a row for other trainers (trajectories.jsonl), Groups the
// barrier that scores rollouts of one task together. Package agl under this one
// feeds a distributed trainer of the 8B policy with them.
package train
