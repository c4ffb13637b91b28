// Package toolworld generates tasks with checkable answers over the built-in
// tools, to learn when to search, to compute, to ask, to ask again and to stop.
// Tools are the real ones and run behind the ordinary orchestrator; experts are
// simulated: how often they are right depends on their skill and on what they
// were given. Every instance draws its own subset of tools and experts, prices,
// latencies and preferences, as the paper's training does (arXiv 2511.21689,
// §3.3).
package toolworld
