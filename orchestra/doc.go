// Package orchestra runs tasks: a small policy calls tools and expert models
// turn by turn, within a budget and a user's preferences, until it can answer.
//
//	o, err := orchestra.New(orchestra.WithExperts(model), orchestra.WithTools(tool))
//	res, err := o.Run(ctx, orchestra.Task{Prompt: "…", Budget: cost.Budget{USD: cost.USD(0.02)}})
//	fmt.Println(res.Answer, res.Spent.USD, res.Stop)
//
// A run ends with what it has, as long as its policy obeys its context (a tool that
// does not is given up): the Result is never nil, its Ledger is
// complete, and the error is nil exactly when there is an answer. Every run
// leaves a Trajectory, the list of its events, from which all else is derived.
package orchestra
