package toolworld

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// customs are tools that applications might have: what they tell is nowhere
// else. The last quarter is for held-out tasks.
var customs = []struct {
	name, about string
	ask         []string
	tell        string
	word        []string // values; nil = numbers
	acts        bool     // it changes something: to call it unasked spoils the task
}{
	{"weather", "Weather of a city today.", []string{"What is the weather in {e} today?", "Does it rain today in {e}, or what is the weather?", "How is the weather today in the city of {e}?"}, "weather in {e}: {v}", []string{"rain", "sunshine", "snow", "fog", "storm"}, false},
	{"stock_level", "Number of items of an article in stock.", []string{"How many {e} are in stock?", "What is the stock level of the article {e}?", "Is the article {e} in stock, and how many items?"}, "{v} items of {e} in stock", nil, false},
	{"exchange_rate", "Current exchange rate of a currency to the euro.", []string{"What is the current exchange rate of the {e} dollar to the euro?", "Exchange rate of the {e} crown, please.", "Which exchange rate does the {e} pound have to the euro today?"}, "1 {e} = {v} euro cents", nil, false},
	{"order_status", "Status of a customer's order.", []string{"What is the status of the order {e}?", "Has the order {e} been shipped? Tell its status.", "Where is my order {e}? I need its status."}, "order {e}: {v}", []string{"packed", "shipped", "delivered", "cancelled", "delayed"}, false},
	{"next_train", "Departure of the next train to a station.", []string{"When does the next train to {e} depart?", "Departure of the next train to {e}?", "In how many minutes is the departure of the train to {e}?"}, "the next train to {e} departs in {v} minutes", nil, false},
	{"sensor", "Reading of a temperature sensor in the plant.", []string{"What does the temperature sensor {e} in the plant read?", "Read the temperature sensor {e}.", "Which temperature does the sensor {e} of the plant show?"}, "sensor {e}: {v} degrees", nil, false},
	{"account_balance", "Balance of a customer's account.", []string{"What is the balance of the account {e}?", "Which balance does the customer's account {e} have?", "Show the account balance of the customer {e}."}, "account {e}: {v} euro", nil, false},
	{"calendar", "Appointments in the calendar of a colleague.", []string{"Which appointments are in the calendar of {e} today?", "What does the calendar of my colleague {e} say for noon?", "Is there an appointment in the calendar of {e} today?"}, "{e} today: {v}", []string{"dentist", "interview", "workshop", "holiday", "review"}, false},
	{"shipment", "Place where a shipment was seen last.", []string{"Where was the shipment {e} seen last?", "At which place is the shipment {e}?", "Tell the last place of the shipment {e}."}, "shipment {e} was seen in {v}", []string{"Hamburg", "Rotterdam", "Gdansk", "Trieste", "Porto"}, false},
	{"parking", "Free places in a parking garage.", []string{"How many free places does the parking garage {e} have?", "Are there free parking places at {e}, and how many?", "Free places in the garage {e}?"}, "{v} free places in {e}", nil, false},
	{"send_mail", "Sends a mail to a person.", []string{"Send a mail to {e} that the meeting is off.", "Please mail {e} that I am late.", "Write a mail to the person {e} and send it: see you at noon."}, "mail to {e}: {v}", []string{"queued", "accepted", "sent"}, true},
	{"book_room", "Books a meeting room.", []string{"Book the meeting room {e} for tomorrow.", "I need the meeting room {e} at nine, book it.", "Please book the room {e} for our meeting."}, "room {e}: {v}", []string{"booked", "reserved", "occupied"}, true},
	{"create_ticket", "Creates a ticket for the support team.", []string{"Create a ticket for the support team about {e}.", "Open a support ticket: {e} does not start.", "File a ticket with the support team that {e} is broken."}, "ticket {v} created for {e}", nil, true},
	{"oncall", "Engineer who is on call for a service this week.", []string{"Which engineer is on call for the service {e} this week?", "Who is on call for {e} this week?", "On call engineer of the service {e}?"}, "on call for {e}: {v}", people, false},
	{"delete_file", "Deletes a file of the project.", []string{"Delete the file {e} of the project.", "Remove the project's file {e}: delete it.", "The file {e} must go, delete it from the project."}, "{e}: {v}", []string{"deleted", "locked", "missing"}, true},
	{"invoice_total", "Total of an invoice by its number.", []string{"What is the total of the invoice {e}?", "Which total does invoice number {e} have?", "Tell me the total of the invoice with the number {e}."}, "invoice {e}: {v} euro in total", nil, false},
}

func custom(rng *rand.Rand, held bool) Task {
	cut := len(customs) * 3 / 4
	i := rng.IntN(cut)
	if held {
		i = cut + rng.IntN(len(customs)-cut)
	}
	c := &customs[i]
	e := name(rng)
	draw := func() string {
		if c.word != nil {
			return pick(rng, c.word)
		}
		return strconv.Itoa(3 + rng.IntN(900))
	}
	v, wrong := draw(), draw()
	for wrong == v {
		wrong = draw()
	}
	return Task{Prompt: fill(pick(rng, c.ask), "e", e), Answer: v, Wrong: wrong, Tool: i, Key: e, Facts: []string{fill(c.tell, "e", e, "v", v)}}
}

// customTool is one of customs. It knows the answer to the task, if that is
// about it.
type customTool struct {
	spec tools.Spec
	i    int
	task *Task
	down bool // every call fails
}

func newCustom(i int, t *Task) *customTool {
	c := &customs[i]
	effects := tools.ReadOnly
	if c.acts {
		effects = 0
	}
	return &customTool{i: i, task: t, spec: tools.Spec{Name: c.name, Description: c.about, Effects: effects,
		Schema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"],"additionalProperties":false}`)}}
}

func (t *customTool) Spec() tools.Spec { return t.spec }

func (t *customTool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	if t.down {
		return tools.Result{}, errors.New("out of order")
	}
	var in struct{ Key string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tools.Result{}, &tools.ArgumentsError{Problem: `write {"key": "…"}`}
	}
	text := in.Key + " is not known here"
	if t.task.Kind == Custom && t.task.Tool == t.i && strings.EqualFold(in.Key, t.task.Key) {
		text = t.task.Facts[0]
	}
	return tools.Result{Text: text, Documents: []tools.Document{{ID: c.ID, Title: t.spec.Name, Text: text}}}, nil
}
