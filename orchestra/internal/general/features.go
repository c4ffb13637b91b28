package general

// The feature vector, version 2. Every candidate (an offer, or to finish with
// the best attempt) is described by these numbers and nothing else; of the names of
// tools they hold what the words say, of those of models nothing. Most lie in 0 to 1.
const (
	Call         = iota // a call
	Finish              // finish with the best attempt
	GiveUp              // end the run without an answer; a candidate only while there is no attempt
	GathersFirst        // a call that makes no attempt, while nothing has been gathered and there is no attempt
	GathersMore         // the same, when something has been gathered
	GathersLate         // the same, when there is an attempt
	AnswersBlind        // a call that makes an attempt, while nothing has been gathered
	AnswersTold         // the same, when something has
	AnswersMore         // the same, when there is an attempt
	Exact               // a call that makes an attempt without a model
	Again               // how often this very offer has worked already: half of it, at most 1
	SameTool            // the same for other offers of its tool
	Failed              // how often it failed: half of it, at most 1
	Dead                // its tool is not worth another try: it failed twice, or once if that may have changed something
	Writer              // an expert must write its arguments
	Effects             // it may change the world
	Bidden              // a tool that may change the world: how much more than any other its words are those of the task
	Match               // how much of the tool's name and description the task contains, 0 to 1.5; 0 if it has worked, or is failing
	Rival               // the most of that of another tool; for a tool that may change the world, of one that was called too
	Serves              // what the tool is for is what the task needs and has not got yet, less where rival is high
	Idle                // what the tool is for is not what the task needs now, or speaks of
	Unmet               // an answer or the end: the most that a call on offer would serve
	Cost                // not of experts, as are the next five: weight of cost × square root of its share of the money left
	Latency             // weight of latency × square root of its share of the time left
	Dearer              // weight of cost × share of its price that the cheapest offer of its tool saves
	Slower              // weight of latency × share of its time that the quickest offer of its tool saves
	Skill               // weight of accuracy × (skill − ½), 0 if it was not measured
	Use                 // the user's preference for it
	Worth               // an expert, before there is any attempt: its chance to be right, less what its cost and time are worth, plus its preference
	Gain                // an expert, when there is an attempt: what the network takes asking on to be worth
	Asked               // an expert: experts that have answered, a quarter of their number, at most 1
	Confidence          // finish: confidence of the best attempt
	Doubt               // finish: weight of accuracy × (1 − confidence)
	TurnsUsed           // finish: share of the turns that are over
	BudgetUsed          // finish: share of the money that is spent
	NumFeatures
)

// Names are the features' names in weight files, in order. A file for other
// features is refused.
var Names = [NumFeatures]string{
	"call", "finish", "give_up", "gathers_first", "gathers_more", "gathers_late", "answers_blind", "answers_told", "answers_more", "exact", "again", "same_tool", "failed", "dead",
	"writer", "effects", "bidden", "match", "rival", "serves", "idle", "unmet", "cost", "latency", "dearer", "slower", "skill", "use", "worth", "gain", "asked",
	"confidence", "doubt", "turns_used", "budget_used",
}

// Features describe one candidate.
type Features [NumFeatures]float32
