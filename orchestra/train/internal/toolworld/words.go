package toolworld

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// fill replaces {name} in a template.
func fill(template string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		template = strings.ReplaceAll(template, "{"+pairs[i]+"}", pairs[i+1])
	}
	return template
}

var (
	heads = strings.Fields("vel kor mar tal bren dor sil har fen lum gar nor pel ast ber cal dun eld fal grim hol iv jar kel lor mir nem ost pra quel rim sol tor ul var wes xan yor zel")
	mids  = strings.Fields("a e i o u an en in on ar er or al el il and end ost ist est ova ila ema ori")
	tails = strings.Fields("mora dale stad burg ville ford haven ria nia land ton wick mere grad polis nova hall berg fjord vik")
)

// name invents a name.
func name(rng *rand.Rand) string {
	s := pick(rng, heads) + pick(rng, mids) + pick(rng, tails)
	return strings.ToUpper(s[:1]) + s[1:]
}

// attribute is something that can be known of an entity.
type attribute struct {
	ask    []string // questions; those of held-out tasks come last
	say    []string // sentences that answer them
	short  string   // as part of a sentence, "" if it cannot be reckoned with
	number func(*rand.Rand) int
	word   []string
}

func span(low, high int) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return low + r.IntN(high-low) }
}

// attributes of places, firms, products and programs.
var attributes = []attribute{
	{ask: []string{"What is the population of {e}?", "How many people live in {e}?", "Tell me how many inhabitants {e} has.", "How large is the population of {e}?"},
		say: []string{"The population of {e} is {v}; so many inhabitants live there."}, short: "the population of {e}", number: span(12000, 990000)},
	{ask: []string{"In which year was {e} founded?", "When was {e} founded?", "What is the founding year of {e}?", "Since when does {e} exist?"},
		say: []string{"{e} was founded in the year {v}, its founding year."}, short: "the founding year of {e}", number: span(1100, 1990)},
	{ask: []string{"Who is the mayor of {e}?", "What is the name of the mayor of {e}?", "Which person is mayor of {e}?"},
		say: []string{"The mayor of {e} is {v}."}, word: people},
	{ask: []string{"How many employees does {e} have?", "What number of employees works at {e}?", "How big is the staff of {e}, in employees?"},
		say: []string{"{e} has {v} employees."}, short: "the number of employees of {e}", number: span(40, 90000)},
	{ask: []string{"Which port does the {e} server listen on by default?", "What is the default port of the {e} server?", "On which default port is {e} reached?"},
		say: []string{"By default the {e} server listens on port {v}."}, short: "the default port of {e}", number: span(1024, 65000)},
	{ask: []string{"How do I reset the password in {e}?", "Which command resets the password in {e}?", "What must I type to reset a password of {e}?"},
		say: []string{"To reset the password in {e}, use the command {v}."}, word: commands},
	{ask: []string{"What did {e} report as revenue last year, in millions?", "How high was the revenue of {e}, in millions?", "Find the revenue of {e} in millions."},
		say: []string{"The revenue of {e} last year was {v} millions, as its report says."}, short: "the revenue of {e} in millions", number: span(11, 9000)},
	{ask: []string{"Who wrote the first version of {e}?", "Which author wrote {e} at first?", "Who is the original author of {e}?"},
		say: []string{"The first version of {e} was written by its original author {v}."}, word: people},
	{ask: []string{"Which function of {e} closes a session?", "How can a session be closed with {e}?", "What is the call that closes sessions in {e}?"},
		say: []string{"In {e} the function {v} closes a session."}, word: commands},
	{ask: []string{"What height does the tower of {e} have, in metres?", "How high is the tower in {e}, in metres?", "How many metres does the tower of {e} measure?"},
		say: []string{"The tower of {e} has a height of {v} metres."}, short: "the height in metres of the tower of {e}", number: span(30, 620)},
	{ask: []string{"What is the retention period for logs at {e}, in days?", "According to the policy of {e}, how many days are logs kept?", "How long does {e} keep logs, in days?"},
		say: []string{"Logs are kept by {e} for a retention period of {v} days, according to its policy."}, short: "the days that {e} keeps logs", number: span(3, 900)},
	{ask: []string{"Which river flows through {e}?", "What river is {e} situated on?", "Name the river of {e}."},
		say: []string{"The river {v} flows through {e}, which is situated on it."}, word: rivers},
}

var people = made("Ada Boris Celia Dmitri Elin Farah Goran Hilda Ines Jonas Katja Levin Mona Nadia Oskar Petra Quirin Rosa Stefan Tilda", "Abelson Brandt Castell Dahl Eriksen Fontane Gruber Holm Ivanov Jensen Keller Lindqvist Moreau Novak Orlov Prins")

var commands = made("reset close drop flush revoke renew detach release", "Passphrase Session Handle Token Channel Account Lease Socket")

var rivers = made("Upper Lower Old White Black Silver", "Arn Belva Corra Dessa Evrin Fosna Gild Hasle")

// made combines two lists of words.
func made(first, second string) (all []string) {
	for _, a := range strings.Fields(first) {
		for _, b := range strings.Fields(second) {
			if strings.ToLower(a) == a {
				all = append(all, a+b)
			} else {
				all = append(all, a+" "+b)
			}
		}
	}
	return all
}

// value draws a value of an attribute.
func (a *attribute) value(rng *rand.Rand) string {
	if a.number != nil {
		return strconv.Itoa(a.number(rng))
	}
	return pick(rng, a.word)
}
