package policy

import (
	"math"
	"strings"
	"unicode"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// The feature vector of the embedded policy, version 1. Every candidate (an
// offer, or to finish with the best attempt) is described by these numbers and
// nothing else: no name of a tool or model is a feature. Most lie in 0 to 1.
const (
	fCall         = iota // a call
	fFinish              // finish with the best attempt
	fGathersFirst        // a call that makes no attempt, while nothing has been gathered
	fGathersMore         // the same, when something has
	fAnswersBlind        // a call that makes an attempt, while nothing has been gathered
	fAnswersTold         // the same, when something has
	fExact               // a call that makes an attempt without a model
	fAgain               // how often this very offer has worked already: half of it, at most 1
	fSameTool            // the same for other offers of its tool
	fFailed              // how often it failed: half of it, at most 1
	fWriter              // an expert must write its arguments
	fEffects             // it may change the world
	fMatch               // share of the words of the tool's name and description that the task contains
	fCost                // weight of cost × square root of its share of the money left
	fLatency             // weight of latency × its share of the time left
	fSkill               // weight of accuracy × (skill − ½), 0 if it was not measured
	fUse                 // the user's preference for it
	fConfidence          // finish: confidence of the best attempt; ½ + 1/10 if it does not say
	fDoubt               // finish: weight of accuracy × (1 − confidence)
	fTurnsUsed           // finish: share of the turns that are over
	fBudgetUsed          // finish: share of the money that is spent
	fGiveUp              // end the run without an answer; a candidate only while there is no attempt
	numFeatures
)

// featureNames are the names in weight files, in order. A file for other
// features is refused.
var featureNames = [numFeatures]string{
	"call", "finish", "gathers_first", "gathers_more", "answers_blind", "answers_told", "exact", "again", "same_tool", "failed",
	"writer", "effects", "match", "cost", "latency", "skill", "use", "confidence", "doubt", "turns_used", "budget_used", "give_up",
}

type features [numFeatures]float32

// Unstated is the confidence that an attempt which states none is taken to have.
const Unstated = 0.6

// describeOffer fills in the features of an offer.
func describeOffer(f *features, s *State, o *Offer, words map[string]bool) {
	*f = features{fCall: 1}
	docs, runs, attempts := s.Work.Len()
	gathered, answers := docs+runs > 0, o.Effects&tools.Answers != 0
	switch {
	case !answers && !gathered:
		f[fGathersFirst] = 1
	case !answers:
		f[fGathersMore] = 1
	case gathered || attempts > 0:
		f[fAnswersTold] = 1
	default:
		f[fAnswersBlind] = 1
	}
	if answers && o.Choice == "" && o.Writer == "" {
		f[fExact] = 1
	}
	again, same, failed := history(s, o)
	f[fAgain], f[fSameTool], f[fFailed] = min(float32(again)/2, 1), min(float32(same)/2, 1), min(float32(failed)/2, 1)
	if o.Writer != "" {
		f[fWriter] = 1
	}
	if o.Effects&tools.ReadOnly == 0 {
		f[fEffects] = 1
	}
	f[fMatch] = match(s, o.Tool, words)
	if left := s.Left.USD; o.Estimate.Mean.USD > 0 {
		f[fCost] = float32(s.Prefer.Cost * math.Sqrt(min(o.Estimate.Mean.USD.Dollars()/max(left.Dollars(), 1e-12), 1)))
	}
	if left := s.Left.Time; o.Latency > 0 && left > 0 {
		f[fLatency] = float32(s.Prefer.Latency * min(float64(o.Latency)/float64(left), 1))
	}
	if o.Skill.Tasks > 0 {
		f[fSkill] = float32(s.Prefer.Accuracy * (o.Skill.Score - 0.5))
	}
	f[fUse] = float32(s.Prefer.Weight(o.Names...))
}

// describeFinish fills in the features of finishing with the best attempt, and
// returns it.
func describeFinish(f *features, s *State) (best tools.Attempt, ok bool) {
	confidence := -1.0
	for _, a := range s.Work.Attempts() {
		c := a.Confidence
		if c == 0 {
			c = Unstated
		}
		if c >= confidence { // the newest of equals
			best, confidence, ok = a, c, true
		}
	}
	*f = features{fFinish: 1, fConfidence: float32(confidence), fDoubt: float32(s.Prefer.Accuracy * (1 - confidence))}
	if total := s.Turn - 1 + s.Left.Turns; s.Left.Turns > 0 {
		f[fTurnsUsed] = float32(s.Turn-1) / float32(total)
	}
	if total := s.Limit.USD; total > 0 {
		f[fBudgetUsed] = float32(min(s.Spent.USD.Dollars()/total.Dollars(), 1))
	}
	return best, ok
}

// history counts what became of earlier calls of the offer, and of others of
// its tool.
func history(s *State, o *Offer) (again, same, failed int) {
	for i := range s.Turns {
		for j := range s.Turns[i].Done {
			d := &s.Turns[i].Done[j]
			switch {
			case d.Call.Tool != o.Tool:
			case d.Call.Writer != o.Writer || o.Writer == "" && string(d.Call.Args) != string(o.Args):
				if d.Err == nil {
					same++
				}
			case d.Err != nil:
				failed++
			default:
				again++
			}
		}
	}
	return again, same, failed
}

// match is the share of a tool's own words that occur in the task.
func match(s *State, tool string, task map[string]bool) float32 {
	for i := range s.Tools {
		if t := &s.Tools[i]; t.Name == tool {
			n, hits := 0, 0
			for w := range words(t.Name + " " + t.Description) {
				if n++; task[w] {
					hits++
				}
			}
			if n > 0 {
				return float32(hits) / float32(n)
			}
		}
	}
	return 0
}

// words is the set of a text's words of at least four letters, cut to six so
// that most inflections agree. Shorter ones say little.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if rs := []rune(w); len(rs) >= 4 {
			set[string(rs[:min(len(rs), 6)])] = true
		}
	}
	return set
}
