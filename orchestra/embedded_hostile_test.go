package orchestra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// scribe is an expert that also writes arguments.
type scribe struct{ echo }

func (m scribe) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	text := "<answer>" + m.text + "</answer>"
	for _, x := range r.Messages {
		if strings.Contains(x.Text, "Write the arguments for one call") {
			text = `{"q":"x"}`
		}
	}
	return &models.Response{Text: text, Finish: models.FinishStop, Usage: cost.Usage{Input: 100, Output: 20, Known: true}}, nil
}

// office is what an application may offer: tools that look up and tools that
// act, some of them without arguments. Each returns what it is told to.
func office(result func(name string) (tools.Result, error)) (list []tools.Tool) {
	schema := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)
	for _, t := range []tools.Spec{
		{Name: "get_forecast", Description: "Get the weather forecast for a location.", Effects: tools.ReadOnly, Schema: schema},
		{Name: "create_issue", Description: "Create a new issue in a GitHub repository.", Schema: schema},
		{Name: "delete_file", Description: "Delete a file from the file system. This cannot be undone.", Schema: schema},
		{Name: "send_email", Description: "Send an email message to a recipient.", Schema: schema},
		{Name: "read_file", Description: "Read the complete contents of a file from the file system.", Effects: tools.ReadOnly, Schema: schema},
		{Name: "query", Description: "Run a read-only SQL query against the database.", Effects: tools.ReadOnly, Schema: schema},
		{Name: "get_current_time", Description: "Get the current time.", Effects: tools.ReadOnly},
		{Name: "server_status", Description: "Show the status of the server.", Effects: tools.ReadOnly},
		{Name: "list_files", Description: "List all files in the workspace."},
	} {
		list = append(list, fnTool{t, func(context.Context, tools.Call) (tools.Result, error) { return result(t.Name) }})
	}
	return list
}

// used are the tools that a run called, without the experts' answers.
func used(t *testing.T, experts int, prompt string, result func(name string) (tools.Result, error)) (list []string, stop orchestra.Stop) {
	t.Helper()
	var ms []models.Model
	for i := range experts {
		ms = append(ms, scribe{expert(fmt.Sprint("m", i), "done", cost.Tokens(0.1*float64(i+1), 0.4*float64(i+1)))})
	}
	o := newOrchestra(t, orchestra.WithExperts(ms...), orchestra.WithTools(office(result)...))
	res, err := o.Run(t.Context(), orchestra.Task{Prompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range res.Trajectory.Turns() {
		for _, d := range turn.Done {
			if d.Call.Tool != "answer" {
				list = append(list, d.Call.Tool)
			}
		}
	}
	return list, res.Stop
}

func TestTheDefaultPolicyCallsWhatTheTaskSpeaksOf(t *testing.T) {
	for prompt, want := range map[string][]string{
		"What is the capital of France?":        nil,
		"Hello!":                                nil,
		"Write a poem about autumn.":            nil,
		"What's the weather in Paris tomorrow?": {"get_forecast"},
		"What is the current time?":             {"get_current_time"},
		"Create an issue in the GitHub repository acme/app: the login button is broken": {"create_issue"},
		"Send an email to bob@example.com that the meeting is moved.":                   {"send_email"},
		"Which files are in the workspace? List all files.":                             {"list_files"},
		"How many users signed up last week according to the database?":                 {"query"},
		"Summarize the contents of the file notes.txt.":                                 {"read_file"},
		"Delete the file notes.txt":                                                     {"delete_file"},
	} {
		for kind, result := range map[string]tools.Result{"documents": {Documents: []tools.Document{{ID: "d", Text: "x"}}}, "a text": {Text: "x"}, "nothing": {}} {
			for _, experts := range []int{1, 4} {
				got, stop := used(t, experts, prompt, func(string) (tools.Result, error) { return result, nil })
				if !slices.Equal(got, want) || stop != orchestra.Answered {
					t.Errorf("%q, %d experts, tools return %s: called %q and %s, want %q", prompt, experts, kind, got, stop, want)
				}
			}
		}
	}
}

// What fails is tried again at most once, and not at all where that may do harm
// twice, however many experts could write its arguments.
func TestTheDefaultPolicyGivesUpOnToolsThatFail(t *testing.T) {
	for prompt, want := range map[string][]string{
		"What's the weather in Paris tomorrow?":                                         {"get_forecast", "get_forecast"},
		"Create an issue in the GitHub repository acme/app: the login button is broken": {"create_issue"},
		"Send an email to bob@example.com that the meeting is moved.":                   {"send_email"},
	} {
		for _, experts := range []int{1, 4} {
			got, stop := used(t, experts, prompt, func(string) (tools.Result, error) { return tools.Result{}, errors.New("out of order") })
			if !slices.Equal(got, want) || stop != orchestra.Answered {
				t.Errorf("%q, %d experts: called %q and %s, want %q", prompt, experts, got, stop, want)
			}
		}
	}
}
