// Package chaos makes things go wrong for tests: on the wire, in models and
// tools, and where runs are kept. Everything is drawn from a seed.
//
//	for seed := range chaos.Seeds(t, 100) {
//		plan := chaos.New(seed, chaos.Config{})
//		proxy, err := plan.Proxy("server", server.URL)
//		…
//		m, err := openai.New("m", openai.Config{BaseURL: proxy.URL()})
//		// whatever m says now: is it an answer or a typed error?
//	}
//
// A Plan has points, one for each thing that it wraps. Each point draws from
// the plan's seed and its own name, so what goes wrong at one does not depend on
// how often another was used. Seeds logs the seed of a test that failed, and
// CHAOS_SEED runs that one alone. Where calls of one point are made at the same
// time, or a time limit of the machine's clock decides, a seed repeats what
// is drawn but not who gets it; within a bubble of testing/synctest it repeats
// all.
package chaos
