// Package tooltest helps to test tools, and code that uses them.
//
// Conform tests a tool of your own. Give it arguments that the tool accepts; it
// makes up the bad ones itself, the kind that models write:
//
//	func TestWeather(t *testing.T) {
//		tooltest.Conform(t, func(t *testing.T) tools.Tool {
//			return weather.New(fakeServer(t).URL)
//		}, json.RawMessage(`{"city": "Oslo"}`))
//	}
//
// Check does the same outside tests and returns the problems.
//
// Func makes a tool of a specification and a function that gets the call as it
// is, with nothing checked or caught in between. Broken holds tools that break
// the contract, for tests of code that must survive them.
package tooltest
