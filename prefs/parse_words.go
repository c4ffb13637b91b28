package prefs

import "strings"

// class is what a word is to the grammar. One byte each, so that a sentence is a
// string and a rule a regular expression over it.
type class byte

// The classes. Degrees are digits.
const (
	cName    class = 'N' // a known name, a family of them, or words that stand where a name should
	cNot     class = '!' // not, never
	cNone    class = 'z' // no, without
	cBan     class = 'x' // avoid, exclude
	cBanned  class = 'F' // forbidden, off limits
	cUse     class = 'u' // use, ask
	cPrefer  class = 'p' // prefer, rather
	cLike    class = 'l' // like: prefer, or such as
	cSuchAs  class = 'e' // such as
	cKind    class = 'q' // open, small: says something only with "such as NAME"
	cOnly    class = 'o' // only, nothing but
	cButFor  class = 'n' // anything but
	cOver    class = 'v' // over, rather than
	cMay     class = 'c' // can, may
	cWant    class = 'w' // want
	cNeed    class = 'h' // need, have to
	cUp      class = 'A' // what there can be more of: accuracy, speed
	cDown    class = 'D' // what there can be less of: cost, latency, mistakes
	cSpend   class = 'V' // spend, wait: cost and latency as verbs
	cGood    class = 'G' // cheap, fast, accurate
	cBad     class = 'B' // expensive, slow, rough
	cMore    class = '+' // more, high
	cLess    class = '-' // less, low
	cMatter  class = 'm' // matters, important, to care about
	cVital   class = 'C' // essential
	cMinor   class = 'y' // secondary
	cFine    class = 'k' // fine, acceptable
	cIgnore  class = 'g' // ignore, regardless of
	cNothing class = 'i' // irrelevant
	cZero    class = 'Z' // a phrase that takes all weight from an aspect: take your time
	cAtAll   class = 'I' // at all costs: no matter the cost, or just emphasis
	cSole    class = 'O' // all that matters
	cMost    class = 'S' // most, above all
	cMuch    class = '3'
	cSome    class = '2'
	cLittle  class = '1'
	cNil     class = '0' // not at all
	cEven    class = 'E' // even if
	cAnyway  class = 'K' // no preference
	cIf      class = '?' // unless, when: no vector can say it
	cOther   class = '#' // a small word that no rule has room for
	cComma   class = ','
	cAnd     class = '&'
	cOr      class = '|'
	cBut     class = 'b' // ends a list
	cPlease  class = 'P' // ends a list too: "never X, Y please" may ask for Y
	cAdverb  class = '~' // dropped too, but not after "not" ("not always" is no "never"), nor in lists: "never X, just Y"
	cFiller  class = ' ' // dropped: it, models
)

// The three aspects of an answer, as indices.
const (
	accuracy = iota
	costs
	latency
	aspects
)

// meaning is what a word or phrase stands for.
type meaning struct {
	class  class
	aspect int  // of A, D, G, B and Z
	most   bool // cheapest, as fast as possible
}

// group is the words of a class, separated by commas.
type group struct {
	class class
	list  string
}

// vocabulary is every word and phrase that the grammar knows, without articles.
type vocabulary struct {
	words   map[string]meaning
	longest int      // words of the longest phrase
	twice   []string // phrases listed twice: none, or their meaning is in doubt
}

func (v *vocabulary) add(m meaning, list string) {
	for phrase := range strings.SplitSeq(list, ",") {
		phrase = strings.TrimSpace(phrase)
		if _, ok := v.words[phrase]; ok {
			v.twice = append(v.twice, phrase)
		}
		v.words[phrase] = m
		v.longest = max(v.longest, 1+strings.Count(phrase, " "))
	}
}

// newVocabulary writes the words down.
func newVocabulary() *vocabulary {
	v := &vocabulary{words: map[string]meaning{}}
	for _, g := range []group{
		{cNot, "not, never, neither, under no circumstances, in no case, at no time, on no account, by no means"},
		{cNone, "no, without, zero"},
		{cBan, "avoid, avoiding, exclude, excluding, ban, forbid, skip, block, disallow, omit, prohibit, refuse, disable, stay away from, keep away from, steer clear of, stop using, leave out, rule out, stay off, keep off"},
		{cBanned, "forbidden, banned, prohibited, excluded, disallowed, unwanted, off limits, off-limits, taboo"},
		{cUse, "use, using, used, call, calling, called, ask, asking, asked, try, trying, touch, consult, run, query, pick, choose, select, employ, go with, go for, rely on, stick with, take, let us use, make use of"},
		{cPrefer, "prefer, prefers, preferred, preferring, favour, favor, favoured, favored, rather, preferably, lean towards, lean toward, lean on, prioritise, prioritize, focus on, emphasise, emphasize, optimise for, optimize for, love, ideally"},
		{cLike, "like"},
		{cSuchAs, "such as, e.g, eg, for example, for instance"},
		{cKind, "open, open-source, open source, open-weight, open-weights, open weights, closed, proprietary, commercial, local, small, smaller, large, larger, big, bigger, free"},
		{cOnly, "only, only about, exclusively, solely, nothing but, nothing except, nothing other than, nothing else than, stick to, nothing else, no others, nobody else, limit yourself to, restrict yourself to"},
		{cButFor, "anything but, anything except, anything other than, everything but, everything except, all but, any model but, any model except, any tool but, any tool except"},
		{cOver, "over, rather than, instead of, more than, before, ahead of, above, than"},
		{cMay, "can, may, could, might"},
		{cWant, "want, wants, wish, would like, give me, get me, keep, make, looking for, go easy"},
		{cNeed, "need, needs, have to, has to, need to, needs to, need for"},
		{cMore, "more, high, higher, highest, max, maximum, maximise, maximize, maximal, improve, increase, good, better, great, top, up"},
		{cLess, "less, low, lower, minimal, minimum, min, minimise, minimize, reduce, cut, save, saving, limit, down, decrease, fewer, few"},
		{cMatter, "matter, matters, count, counts, care, care about, care for, cares about, care if, care whether, matter if, mind, mind if, worry, worry about, concern, concerns, concerned, concerned about, important, importance, of importance, bother, bothered, bother about, value, relevant, significant, issue, problem, consider, watch, watch out for, pay attention to, look at, keep eye on, mindful of, careful with, careful about"},
		{cVital, "crucial, critical, essential, vital, key, imperative, mandatory"},
		{cFine, "fine, ok, okay, acceptable, allowed, alright, all right, tolerable, permitted, accept, tolerate, allow, ok if, okay if, fine if, alright if, acceptable if, okay with, ok with, fine with, fine by me, ok by me, okay by me, good enough"},
		{cIgnore, "ignore, disregard, regardless of, regardless, irrespective of, whatever, forget, forget about, no matter, neglect, despite"},
		{cNothing, "irrelevant, unimportant, negligible, no object, be damned, of no importance, of no concern"},
		{cAtAll, "at all costs"},
		{cSole, "all that matters, all that counts, all i care about, everything that matters, only thing that matters, only thing i care about, only thing that counts"},
		{cMost, "most, most about, mostly, above all, above all else, above everything, first, foremost, mainly, primarily, paramount, priority, top priority, first priority, highest priority, main priority, number one priority, main concern, biggest concern, above everything else, over everything else, more than anything, more than anything else, first and foremost"},
		{cMuch, "very, much, lot, lots, greatly, strongly, highly, extremely, really, so, too, lot of, lots of, much of, much about, lot about, too much about, that much about, particularly, terribly, overly, especially, hugely, absolutely, super, deeply, great deal, unnecessarily, needlessly, all that much, that much"},
		{cSome, "somewhat, moderately, fairly, reasonably, quite, to some extent, to some degree, some, kind of, sort of"},
		{cLittle, "little, bit, little about, bit about, little bit, slightly, mildly, weakly, hardly, barely, if in doubt, when in doubt, in doubt, marginally"},
		{cMinor, "secondary, not priority, not my priority, not top priority, not my top priority, no priority, of little importance, of secondary importance, of minor importance, afterthought"},
		{cNil, "at all, at all about, not at all, in slightest, whatsoever"},
		{cEven, "even if, even when, even though"},
		{cAnyway, "no preference, no preferences, no particular preference, no special wishes, no wishes, default, defaults, defaults are fine, usual, anything is fine, anything goes, up to you, you decide, surprise me, none"},
		{cIf, "unless, if, when, whenever, until, except, while, only if, only when, as long as, provided, otherwise, once, whether, depending, depends, in case, after, during"},
		{cOther, "for, in, on, with, about, at, from, by, as, into, per, of, because, since, how, what, who, which, where, why, anything, everything, nothing, something, else, instead, all, both, same"},
		{cAnd, "and, plus, also, as well as"},
		{cBut, "but, yet, however, though, although, then"},
		{cOr, "or, nor"},
		{cPlease, "please, pls, plz"},
		{cAdverb, "just, simply, always, generally, usually, normally, typically, in general, overall, actually, anyway, here, for now, for this, for this task, for me, for us, well then, thanks, thank you, hi, hello, i, we, you, can you, could you, can we, could we"},
		{cFiller, "make sure, ensure, ever, me, my, mine, us, our, your, yourself, it, its, he, she, they, them, this, that, these, those, there, to, do, does, did, am, is, are, be, been, being, was, were, will, would, shall, should, must, ought, let, " +
			"model, models, answer, answers, answering, tool, tools, result, results, response, responses, reply, replies, one, ones, thing, things, option, options, solution, solutions, expert, experts, source, sources, output, outputs, llm, llms, work, preference, preferences, settings, wishes, any, if possible, when possible, where possible, whenever possible, whenever you can, if you can, when you can, where you can, as far as possible, of all, have, has, having, got, get, getting, things done, possible, tasks, task, question, questions, way, ways"},
	} {
		v.add(meaning{class: g.class}, g.list)
	}
	for a, groups := range [aspects][]group{
		accuracy: {
			{cUp, "accuracy, quality, correctness, precision, reliability, right answer, right answers, correct answer, correct answers, best answer, best answers, getting it right, exactness, truth, success"},
			{cDown, "mistake, mistakes, error, errors, wrong answer, wrong answers, inaccuracy, inaccuracies, hallucination, hallucinations"},
			{cGood, "accurate, accurately, correct, correctly, precise, precisely, right, careful, carefully, thorough, thoroughly, reliable, reliably, exact, exactly, get it right, rigorous, good answer, good answers, good results, high-quality, diligent, trustworthy"},
			{cBad, "rough, rough estimate, rough estimates, rough guess, sloppy, approximate, inaccurate, imprecise, wrong, careless, unreliable, quick and dirty, good enough answer, ballpark, mediocre"},
		},
		costs: {
			{cUp, "thrift, savings"},
			{cDown, "cost, costs, price, prices, money, budget, expense, expenses, bill, fees, what it costs, how much it costs, how much you spend, how much i pay, how much i spend, cost of it, dollars, expenditure, pricing"},
			{cSpend, "spend, spending, pay, paying, cost money"},
			{cGood, "cheap, cheaply, cheaper, inexpensive, affordable, economical, economically, frugal, frugally, thrifty, low-cost, low cost, budget-friendly, cost-effective, cost-efficient, cost-conscious, cost conscious, cost-sensitive, cost sensitive, price-sensitive, price sensitive, price-conscious, price conscious, budget-conscious, budget conscious, nothing expensive, nothing too expensive, nothing costly, tight budget, small budget, low budget, budget tight, budget is tight, budget is small, on budget, on tight budget, spend little, spend very little, cost little, cost very little, money is tight, be economical, not waste money, not waste my money, not overspend, waste no money"},
			{cBad, "expensive, pricey, costly, pricy, dear, overpriced"},
			{cZero, "money is no object, money no object, cost is no object, spare no expense, spare no cost, spare no costs, spare no expenses, whatever it costs, whatever it takes, whatever it may cost, no matter what it costs, no matter how much it costs, no matter how expensive, no matter how expensive it is, however expensive, however much it costs, at any cost, at any price, at whatever cost, at whatever price, spend whatever you need, spend what you need, spend freely, spend as much as you need, spend as much as you like, spend as you like, price is no object, unlimited budget, budget is unlimited, not spare money, not skimp, willing to pay, willing to pay more, happy to pay, happy to pay more, willing to spend, willing to spend more"},
		},
		latency: {
			{cUp, "speed, quickness, responsiveness, promptness"},
			{cDown, "latency, time, delay, delays, waits, wait time, waiting time, response time, response times, duration, how long it takes, how long you take, how long i wait, latencies"},
			{cSpend, "wait, waiting, wait long, waste time"},
			{cGood, "fast, quick, quickly, faster, quicker, rapid, rapidly, speedy, prompt, promptly, snappy, hurry, hurry up, in hurry, rush, in rush, urgent, urgently, low-latency, low latency, soon, sooner, time is short, short on time, little time, no time, not much time, time-critical, time-sensitive, instant, instantly, immediate, immediately, speed up, responsive, nothing slow, nothing too slow, can not wait, not keep me waiting, be swift, swift, swiftly, hurried"},
			{cBad, "slow, slower, slowly, long, longer, take long, take longer, take while, take very long, take too long, take so long, takes long, takes longer, takes while, taking long, sluggish, laggy, take forever, take ages"},
			{cZero, "take your time, take all time you need, take all time, take as long as you need, take as long as you like, take as long as it takes, take as long as you want, however long it takes, no matter how long, no matter how long it takes, whatever time it takes, can wait, willing to wait, happy to wait, all day, plenty of time, lots of time, lot of time, all time in world, got time, have time, there is time, be patient, patient, no hurry, no rush, in no hurry, in no rush, not in hurry, not in rush, no deadline, not urgent"},
		},
	} {
		for _, g := range groups {
			v.add(meaning{class: g.class, aspect: a}, g.list)
		}
	}
	for a, list := range [aspects]string{
		accuracy: "most accurate, most precise, most reliable, most correct, most thorough, best, best possible, best quality, highest quality, highest accuracy, as accurate as possible, as accurately as possible, as precise as possible, as correct as possible, as reliable as possible, perfect, perfectly, as good as possible, as thorough as possible, as well as possible, at its best",
		costs:    "cheapest, cheapest possible, as cheap as possible, as cheaply as possible, as inexpensive as possible, as low cost as possible, least expensive, lowest cost, lowest price, lowest costs, spend as little as possible, spend least, as little money as possible, cost as little as possible",
		latency:  "fastest, quickest, fastest possible, as fast as possible, as quick as possible, as quickly as possible, as soon as possible, asap, lowest latency, as rapidly as possible, as promptly as possible, least time, right now, right away, highest speed",
	} {
		v.add(meaning{class: cGood, aspect: a, most: true}, list)
	}
	// Words that look like a wish and may mean two things.
	v.add(meaning{class: cOther}, "no budget, no cost limit, no time limit, low effort, free of charge")
	return v
}
