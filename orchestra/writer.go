package orchestra

import (
	"errors"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// writing asks an expert for the arguments of a tool. complaint says what was
// wrong with those that it wrote before.
func (r *run) writing(t *tool, complaint string) *models.Request {
	return writingRequest(r.call("", t, nil), &t.spec, complaint)
}

func writingRequest(c tools.Call, s *tools.Spec, complaint string) *models.Request {
	system := "Write the arguments for one call of a tool that helps with the task. Reply with one JSON object that matches the schema, and nothing else."
	user := fmt.Sprintf("Task: %s\n\nTool: %s: %s\nSchema: %s", c.Prompt, s.Name, s.Description, s.Schema)
	for i, d := range c.Work.Documents() {
		if i == 5 {
			break
		}
		user += fmt.Sprintf("\n\nDocument: %s\n%s", d.Title, brief(d.Text))
	}
	if complaint != "" {
		user += "\n\nYour last arguments were refused: " + complaint
	}
	chat := append([]models.Message{{Role: models.System, Text: system}}, c.History...)
	return &models.Request{
		Messages:  append(chat, models.Message{Role: models.User, Text: user}),
		MaxOutput: 1000, MinOutput: 100,
	}
}

// written has the expert write the arguments and calls the tool with them. If
// they are refused, the expert may try once more. Its calls are metered within
// the hold of the tool call.
func (j *job) written() (tools.Result, error) {
	complaint := ""
	for try := 1; ; try++ {
		req := writingRequest(j.call, &j.tool.spec, complaint)
		if j.writer.info.Schema {
			req.Schema = j.tool.spec.Schema
		}
		resp, err := j.writer.model.Generate(j.ctx, req)
		if err != nil {
			return tools.Result{}, fmt.Errorf("orchestra: %s could not write the arguments: %w", j.writer.info.Name, err)
		}
		v, err := jsonfix.Read(resp.Text)
		if err == nil && (v.Truncated || resp.Finish == models.FinishLength) {
			err = errors.New("they were cut off")
		}
		var args *tools.ArgumentsError
		if err == nil {
			j.call.Args = v.JSON
			var res tools.Result
			if res, err = j.tool.Call(j.ctx, j.call); err == nil || !errors.As(err, &args) {
				return res, err
			}
		}
		if try == 2 {
			return tools.Result{}, &tools.ArgumentsError{Problem: fmt.Sprintf("%s wrote arguments that cannot be used: %v", j.writer.info.Name, err)}
		}
		complaint = brief(err.Error())
	}
}
