// Approval runs a task whose tool sends mail: the run pauses, a human decides at
// the terminal, and the run goes on. Between the two parts nothing is kept in
// memory but what could as well lie in a file for a week.
//
//	go run ./examples/approval
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Mail is what the tool takes.
type Mail struct {
	To   string `json:"to" validate:"required,email"`
	Text string `json:"text" validate:"required"`
}

func main() {
	log.SetFlags(0)
	send := tools.Must(tools.New("send_mail", "Sends a mail.",
		func(_ context.Context, m Mail) (string, error) { return "sent to " + m.To, nil },
		tools.WithEffects(tools.NeedsApproval|tools.Answers),
		// The embedded policy cannot write arguments: the tool proposes them.
		tools.WithPropose(func(tools.Call) []json.RawMessage {
			return []json.RawMessage{[]byte(`{"to": "ada@example.com", "text": "The build is green."}`)}
		})))
	o, err := orchestra.New(orchestra.WithTools(send))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	res, err := o.Run(ctx, orchestra.Task{Prompt: "Tell Ada that the build is green."})
	if !errors.Is(err, orchestra.ErrPaused) {
		log.Fatal(err)
	}
	var file bytes.Buffer // a file, a queue, a row of a database
	if _, err := res.Trajectory.WriteTo(&file); err != nil {
		log.Fatal(err)
	}

	past, err := orchestra.ReadTrajectory(&file)
	if err != nil {
		log.Fatal(err)
	}
	var replies []orchestra.Reply
	for _, p := range past.Result().Pending {
		fmt.Printf("%s %s? [y/n] ", p.Call.Tool, p.Call.Args)
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no input is no
		if strings.HasPrefix(line, "y") {
			replies = append(replies, orchestra.Approve(p.ID))
		} else {
			replies = append(replies, orchestra.Refuse(p.ID, "not now"))
		}
	}
	res, err = o.Resume(ctx, past, replies...).Result()
	fmt.Println(res.Answer, res.Stop, err)
}
