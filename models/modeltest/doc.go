// Package modeltest helps to test code that uses models, and models.
//
// A Model follows a script and is asked instead of a real one:
//
//	m := modeltest.New(models.Info{Name: "expert", Price: cost.Tokens(1, 2)},
//		modeltest.RateLimited(time.Second),       // first a refusal,
//		modeltest.CallTool("add", `{"a":1,"b":2}`), // then a call of a tool,
//		modeltest.Say("3"),                       // then an answer
//	)
//	answer, err := codeUnderTest(ctx, m)
//	m.AssertDone(t) // all of it was asked for, and no more
//
// Nothing that a model says can be trusted, so there is a step for each way to
// go wrong: errors and rate limits, streams that are cut, answers that never
// come, usage that is missing or false, arguments that are not JSON, ids that
// are not unique, caps that are ignored. Func makes a model of a function for
// everything else, and Broken holds models that break the contract.
//
// Steps that take time use timers only, so in a bubble of testing/synctest they
// take none.
//
// # Conformance
//
// Conform tests a model of your own:
//
//	func TestModel(t *testing.T) {
//		modeltest.Conform(t, func(t *testing.T) models.Model {
//			return mymodel.New(fakeServer(t).URL)
//		})
//	}
//
// Check does the same outside tests and returns the problems.
package modeltest
