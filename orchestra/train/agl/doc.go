// Package agl trains the 8B policy with an existing distributed trainer: it is a
// rollout controller for Agent Lightning 1.0 (verl on Ray and vLLM underneath).
//
// The trainer puts rollouts into the queue of its server, agl-server, which also
// is a gateway to the model under training and records what that samples. A
// Controller takes the rollouts of one task together, plays each with an
// ordinary orchestra.Orchestrator whose policy is that model, scores the whole
// group with the paper's eq. 2, which no reward of a single rollout can, and
// hands the rewards back. Token ids and log probabilities go from vLLM through
// the gateway to the trainer; nothing is tokenised again.
//
// Client is the server's API, for programs that do more. Both were written for
// version 1.0.2 and are tested against it.
package agl
