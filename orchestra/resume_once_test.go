package orchestra_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// What a human approved is done once, however its arguments were written: a
// trajectory that was written down and read has them in another form.
func TestApprovedCallIsMadeOnce(t *testing.T) {
	type mail struct {
		To   string `json:"to"`
		Text string `json:"text"`
	}
	for name, args := range map[string]string{
		"compact":    `{"to":"ada","text":"The build is green."}`,
		"spaces":     `{ "to": "ada", "text": "The build is green." }`,
		"escapes":    `{"to":"ada","text":"a < b && b > c"}`,
		"line ends":  "{\n\t\"to\": \"ada\",\n\t\"text\": \"The build is green.\"\n}",
		"separators": "{\"to\":\"ada\",\"text\":\"a\u2028b\"}",
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			send := tools.Must(tools.New("send_mail", "Sends a mail.", func(_ context.Context, m mail) (string, error) {
				sent++
				return "sent to " + m.To, nil
			}, tools.WithEffects(tools.NeedsApproval|tools.Answers), tools.WithPropose(func(tools.Call) []json.RawMessage {
				return []json.RawMessage{json.RawMessage(args)}
			})))
			o, err := orchestra.New(orchestra.WithTools(send))
			if err != nil {
				t.Fatal(err)
			}
			res, err := o.Run(t.Context(), orchestra.Task{Prompt: "Tell Ada that the build is green."})
			for range 3 {
				if !errors.Is(err, orchestra.ErrPaused) {
					break
				}
				var file bytes.Buffer
				if _, err := res.Trajectory.WriteTo(&file); err != nil {
					t.Fatal(err)
				}
				past, err2 := orchestra.ReadTrajectory(&file)
				if err2 != nil {
					t.Fatal(err2)
				}
				var replies []orchestra.Reply
				for _, p := range past.Result().Pending {
					replies = append(replies, orchestra.Approve(p.ID))
				}
				res, err = o.Resume(t.Context(), past, replies...).Result()
			}
			if sent != 1 || err != nil || res.Answer != "sent to ada" {
				t.Errorf("sent %d times: %q, %v", sent, res.Answer, err)
			}
		})
	}
}
