package toolworld

import (
	"math/rand/v2"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

// Text is a text with what it says: a task's needs, or a tool's purpose.
type Text struct {
	Text             string
	LookUp, Compute  bool // of a task
	Custom           bool // a task for a tool of the application
	Finds, Computing bool // of a tool
}

// Tasks draws n texts of tasks with their needs.
func Tasks(rng *rand.Rand, n int) []Text { return tasks(rng, n, false) }

func tasks(rng *rand.Rand, n int, held bool) (list []Text) {
	for i := range n {
		k := Kinds[i%len(Kinds)]
		t := generate(rng, k, held)
		list = append(list, Text{Text: t.Prompt, LookUp: k == LookUp || k == Both, Compute: k == Arithmetic || k == Program || k == Both, Custom: k == Custom})
	}
	return list
}

// Descriptions lists texts of tools with their purposes, without those of
// held-out instances.
func Descriptions() (list []Text) {
	named := func(d dress, t tools.Tool) string {
		s := t.Spec()
		if d.name != "" {
			s.Name, s.Description = d.name, d.about
		}
		return s.Name + " " + s.Description
	}
	find, _ := tools.Search((*retriever)(nil))
	reason, _ := tools.Reason((*interpreter)(&World{js: noJS{}}), &played{Expert: &Expert{Info: models.Info{Name: "any"}}})
	for _, d := range searches[:len(searches)*3/4] {
		list = append(list, Text{Text: named(d, find), Finds: true})
	}
	for _, d := range runners[:len(runners)*3/4] {
		list = append(list, Text{Text: named(d, reason), Computing: true})
	}
	list = append(list, Text{Text: named(dress{}, tools.Calculator()), Computing: true}, Text{Text: named(dress{}, search.Reader())})
	for _, c := range customs[:len(customs)*3/4] {
		list = append(list, Text{Text: c.name + " " + c.about})
	}
	add := func(lines string, finds, computing bool) {
		for l := range strings.Lines(strings.TrimSpace(lines)) {
			list = append(list, Text{Text: strings.TrimSpace(l), Finds: finds, Computing: computing})
		}
	}
	add(finders, true, false)
	add(computers, false, true)
	add(others, false, false)
	return list
}

// Further descriptions, as servers of tools word them.
const finders = `
local_search Search the local index for passages.
search_web Searches the internet and returns results with their text.
query_docs Query the documentation and get the matching pages.
retrieve Retrieves passages that are relevant to a query.
news_search Find news articles about a subject.
paper_search Looks up scientific papers by title, author or topic.
get_article Get the article of the encyclopedia with a title.
fetch_page Fetches a web page and returns its text.
semantic_search Find chunks of documents by meaning.
search_files Searches files for text and returns the matches.
lookup Looks up a term in the reference.
search_code Searches repositories for code that matches a query.
faq Finds entries of the frequently asked questions.
archive_search Full text search in the archive of documents.
wikipedia Search Wikipedia and return the summaries of the pages.
legal_search Finds statutes and decisions that match a query.
vector_store Returns the nearest documents of the vector store.
browse Open a page on the web and read it.
`

const computers = `
execute_python Runs Python code and returns what it prints.
run_javascript Evaluates JavaScript in a sandbox.
math_solver Solves equations and computes results exactly.
evaluate Evaluates a mathematical expression.
sandbox Execute a program in a sandbox and get its output.
wolfram Computes answers to mathematical questions.
statistics Calculates mean, median and deviation of numbers.
unit_math Does arithmetic with units.
jupyter Runs a cell of code and returns the output.
numeric Numeric computation: sums, roots, integrals.
shell_calc Runs a short script to calculate a value.
optimizer Computes the optimum of a linear program.
`

const others = `
send_mail Sends a mail to a recipient.
create_ticket Creates a ticket for the support team.
translate_text Translates a text into another language.
book_room Books a meeting room.
get_user Returns the profile of a user.
list_orders Lists the orders of a customer.
play_music Plays a song.
set_alarm Sets an alarm.
light Switches a lamp on or off.
payment_status Status of a payment.
flight_status Status of a flight today.
delivery_date Date on which a parcel will be delivered.
answer Give the final answer to the problem, from what is known so far.
image Makes a picture from a description.
remember Stores a note for later.
database_write Writes a row into a table.
phone Calls a telephone number.
stock_price Price of a share at the exchange now.
humidity Humidity measured in a room.
door Opens the door of the garage.
`

// HeldTasks is Tasks of held-out instances.
func HeldTasks(rng *rand.Rand, n int) []Text { return tasks(rng, n, true) }
