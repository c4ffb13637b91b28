package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func ExampleNew() {
	type in struct {
		City string `json:"city" validate:"required" desc:"name of the city"`
		Days int    `json:"days,omitempty" validate:"gte=1,lte=7" default:"1"`
	}
	weather, err := tools.New("weather", "Weather of a city.",
		func(ctx context.Context, in in) (string, error) {
			return fmt.Sprintf("%s, %d days: rain", in.City, in.Days), nil
		},
		tools.WithEffects(tools.ReadOnly|tools.Idempotent|tools.Parallel),
		tools.WithFee(cost.Dollars(0.001)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(weather.Spec().Schema))

	ctx := context.Background()
	res, err := weather.Call(ctx, tools.Call{Args: json.RawMessage(`{"city": "Bergen"}`)})
	fmt.Println(res.Text, err)
	res, err = weather.Call(ctx, tools.Call{Args: json.RawMessage("```json\n{'City': 'Bergen', 'days': '3'}\n```")})
	fmt.Println(res.Text, err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"name of the city","minLength":1},"days":{"type":"integer","default":1,"minimum":1,"maximum":7}},"required":["city"],"additionalProperties":false}
	// Bergen, 1 days: rain <nil>
	// Bergen, 3 days: rain <nil>
}

func ExampleArgumentsError() {
	type in struct {
		To   string `json:"to" validate:"required,email"`
		Text string `json:"text"`
	}
	mail := tools.Must(tools.New("send_mail", "Sends a mail.", func(context.Context, in) (string, error) { return "sent", nil }))
	for _, args := range []string{`{"to": "Ada", "subject": "hi"}`, `{"to": "ada@example.org", "text": "The build is`} {
		_, err := mail.Call(context.Background(), tools.Call{Args: json.RawMessage(args)})
		var bad *tools.ArgumentsError
		if errors.As(err, &bad) {
			fmt.Println(bad.Problem, bad.Truncated)
		}
	}
	// Output:
	// unknown key "subject"; known: to, text; text: is required false
	// are cut off, so the tool was not run; send them again, complete and shorter true
}

type shout struct{}

func (shout) Name() string        { return "Shout" }
func (shout) Description() string { return "Says it louder." }
func (shout) Call(_ context.Context, s string) (string, error) {
	return strings.ToUpper(s), nil
}

// Tools of langchaingo have the shape that Text takes.
func ExampleText() {
	tool, err := tools.Text(shout{}, tools.WithEffects(tools.ReadOnly|tools.Idempotent|tools.Parallel))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tool.Call(context.Background(), tools.Call{Args: json.RawMessage(`{"input": "hello"}`)})
	fmt.Println(res.Text, err)
	// Output: HELLO <nil>
}

func ExampleCheck() {
	fmt.Println(tools.Check(tools.Spec{Name: "web search"}))
	// Output: tools: "web search": Name: must be 1 to 64 letters, digits, _ or -
}
