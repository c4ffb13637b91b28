package train_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// member is a rollout with an answer.
func member(group, id string, right bool, usd, seconds float64) *train.Rollout {
	return &train.Rollout{
		Group: group, ID: id, Step: 1, Task: "task", Valid: true, Answer: "42", Right: right, USD: cost.Dollars(usd), Seconds: seconds,
		Prefer: map[string]float64{"accuracy": 1, "cost": 1, "latency": 1},
		Turns:  []train.RolloutTurn{{FormatOK: true}},
	}
}

// foursome is the group whose rewards are known: see TestGoldenRewards.
func foursome(group string) []*train.Rollout {
	return []*train.Rollout{
		member(group, "a", true, .30, 60), member(group, "b", true, .05, 20), member(group, "c", false, .10, 30), member(group, "d", false, .02, 10),
	}
}

func close6(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestAWholeGroupComesBackScored(t *testing.T) {
	gs := train.NewGroups(4, nil)
	for i, r := range foursome("g") {
		g, err := gs.Add(r)
		if err != nil || (g != nil) != (i == 3) {
			t.Fatalf("member %d: %v, %v", i, g, err)
		}
		if g == nil {
			continue
		}
		if g.Step != 1 || g.ID != "g" || g.Missing != 0 || len(g.Rollouts) != 4 {
			t.Errorf("%+v", g)
		}
		rewards, advantages := []float64{1, 2.692857, 0, 0}, []float64{.060439, 1.392918, -.726678, -.726678}
		for j, r := range g.Rollouts {
			if !close6(r.Reward, rewards[j]) || !close6(r.Advantage, advantages[j]) || r.Dropped != "" {
				t.Errorf("%s: reward %v, advantage %v, dropped %q", r.ID, r.Reward, r.Advantage, r.Dropped)
			}
		}
	}
}

// What the user wants used is what the calls are weighed by.
func TestGroupsWeighTheCallsOfPreferredNames(t *testing.T) {
	gs := train.NewGroups(2)
	one, two := member("g", "a", true, .1, 1), member("g", "b", true, .1, 1)
	one.Calls, two.Calls = map[string]int{"local_search": 2, "web_search": 9}, map[string]int{"local_search": 1}
	for _, r := range []*train.Rollout{one, two} {
		r.Prefer = map[string]float64{"accuracy": 1, "cost": .5, "latency": .2, "local_search": .75}
		if _, err := gs.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if one.Reward != .75 || two.Reward != 0 {
		t.Errorf("rewards %v and %v", one.Reward, two.Reward)
	}
}

func TestGroupOptionsAreObeyed(t *testing.T) {
	score := func(opts ...train.GroupOption) []*train.Rollout {
		rs := foursome("g")
		gs := train.NewGroups(4, opts...)
		for _, r := range rs {
			if _, err := gs.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		return rs
	}
	if r := score(train.GroupFormula(train.Released))[0]; !close6(r.Reward, 7.814286) {
		t.Errorf("reward %v", r.Reward)
	}
	if r := score(train.GroupAdvantage(train.Advantage{Undivided: true}))[3]; !close6(r.Advantage, -3.692857/4) {
		t.Errorf("advantage %v", r.Advantage)
	}
	if r := score(train.GroupMinStd(1.28))[0]; r.Dropped != train.Flat { // its deviation is 1.270457
		t.Errorf("dropped %q", r.Dropped)
	}
}

// Who has a whole group at hand needs no barrier.
func TestScoreIsWhatTheBarrierDoes(t *testing.T) {
	rs := append(foursome("g"), &train.Rollout{ID: "e", Failed: "it never began"})
	slices.Reverse(rs)
	if err := train.Score(rs, train.GroupMinStd(0)); err != nil {
		t.Fatal(err)
	}
	gs := train.NewGroups(5)
	for _, r := range foursome("g") {
		if _, err := gs.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := gs.Close(1, "g")
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(whole.Rollouts)
	for i, r := range whole.Rollouts {
		if r.Reward != rs[i].Reward || !close6(r.Advantage, rs[i].Advantage) || r.Dropped != rs[i].Dropped {
			t.Errorf("%+v, and by Score %+v", r, rs[i])
		}
	}
	other := member("g", "b", true, .1, 1)
	other.Prefer = map[string]float64{"accuracy": .5}
	for name, bad := range map[string][]*train.Rollout{
		"none": {}, "nil": {nil}, "two tasks": {{Failed: "early"}, member("g", "a", true, .1, 1), other}, "endless": {member("g", "a", true, .1, math.Inf(1))},
	} {
		if err := train.Score(bad); !errors.Is(err, train.ErrGroup) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rollouts that are dropped, or failed, stay in their group.
func TestDroppedAndFailedRolloutsStay(t *testing.T) {
	gs := train.NewGroups(4)
	rs := foursome("g")
	rs[1].Turns[0].FormatOK = false
	rs[2].Failed = "the judge is down"
	rs[3].Valid, rs[3].Answer, rs[3].Right = false, "", true
	var g *train.Group
	for _, r := range rs {
		var err error
		if g, err = gs.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	var drops []train.Drop
	sum := 0.0
	for _, r := range g.Rollouts {
		drops = append(drops, r.Dropped)
		sum += r.Advantage
	}
	if !slices.Equal(drops, []train.Drop{"", train.Malformed, train.NoAnswer, train.NoAnswer}) || !close6(sum, 0) {
		t.Errorf("%q, advantages sum to %v", drops, sum)
	}
	if rs[2].Reward != 0 || rs[3].Reward != 0 || rs[1].Reward == 0 || rs[2].Failed != "the judge is down" {
		t.Errorf("%+v, %+v", rs[2], rs[3])
	}
}

// A missing member counts as failed, and changes nothing but the outcome's
// scale, the mean and the deviation.
func TestAClosedGroupIsWhole(t *testing.T) {
	gs := train.NewGroups(4)
	for _, r := range foursome("g")[:2] {
		if g, err := gs.Add(r); g != nil || err != nil {
			t.Fatal(g, err)
		}
	}
	g, err := gs.Close(1, "g")
	if err != nil || g.Missing != 2 || len(g.Rollouts) != 4 {
		t.Fatal(g, err)
	}
	// Of the two that came, the second is the cheapest and the quickest: 1 + 1 + 1.
	for i, want := range []float64{1, 3, 0, 0} {
		if r := g.Rollouts[i]; r.Reward != want || r.Step != 1 || r.Group != "g" || r.Task != "task" {
			t.Errorf("%s: %+v, want a reward of %v", r.ID, r, want)
		}
	}
	for _, r := range g.Rollouts[2:] {
		if r.Failed == "" || r.Dropped != train.NoAnswer || r.Advantage >= 0 || r.Valid {
			t.Errorf("%+v", r)
		}
	}
	lines(t, g.Rollouts...) // and it can be kept
}

// One that its maker knows nothing of is like one that is missing.
func TestFailuresOfWhichNothingIsKnownAreNotCheap(t *testing.T) {
	gs := train.NewGroups(3)
	for _, r := range []*train.Rollout{
		{Group: "g", ID: "0", Step: 1, Failed: "the server was down"}, member("g", "a", true, .30, 60), member("g", "b", true, .10, 20),
	} {
		if _, err := gs.Add(r); err != nil {
			t.Fatal(err)
		} else if r.ID == "b" && r.Reward != 3 {
			t.Errorf("the cheapest and quickest has a reward of %v", r.Reward)
		}
	}
}

// One that failed late is as dear and as slow as it was.
func TestFailuresCountWhatTheyCost(t *testing.T) {
	gs := train.NewGroups(3)
	late, dear, cheap := member("g", "0", false, .50, 100), member("g", "a", true, .30, 60), member("g", "b", true, .10, 20)
	late.Failed = "the run was cut off"
	for _, r := range []*train.Rollout{late, dear, cheap} {
		if _, err := gs.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if late.Reward != 0 || !close6(dear.Reward, 1+.5+.5) || cheap.Reward != 3 {
		t.Errorf("rewards %v, %v and %v", late.Reward, dear.Reward, cheap.Reward)
	}
}

func TestGroupsOfWhichNothingCameAreAllFailures(t *testing.T) {
	g, err := train.NewGroups(3).Close(2, "g")
	if err != nil || g.Missing != 3 || len(g.Rollouts) != 3 {
		t.Fatal(g, err)
	}
	for _, r := range g.Rollouts {
		if r.Reward != 0 || r.Advantage != 0 || r.Dropped != train.Flat {
			t.Errorf("%+v", r)
		}
	}
}

func TestFlushClosesWhatIsOpenInOrder(t *testing.T) {
	gs := train.NewGroups(2)
	for _, k := range []struct {
		step  int
		group string
	}{{2, "a"}, {10, "a"}, {2, "b"}, {1, "z"}} {
		r := member(k.group, "1", true, .1, 1)
		r.Step = k.step
		if _, err := gs.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	flushed, err := gs.Flush()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range flushed {
		got = append(got, fmt.Sprint(g.Step, g.ID, g.Missing, len(g.Rollouts)))
	}
	if !slices.Equal(got, []string{"1z1 2", "2a1 2", "2b1 2", "10a1 2"}) {
		t.Errorf("%q", got)
	}
	if again, err := gs.Flush(); err != nil || len(again) > 0 {
		t.Error(again, err)
	}
}

func TestGroupsRefuseWhatDoesNotBelong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*train.Rollout)
		says   string
	}{
		"no group":          {func(r *train.Rollout) { r.Group = "" }, "group_id"},
		"not a number":      {func(r *train.Rollout) { r.Seconds = math.NaN() }, "latency_s"},
		"the same id":       {func(r *train.Rollout) { r.ID = "a" }, "ids must differ"},
		"other preferences": {func(r *train.Rollout) { r.Prefer = map[string]float64{"accuracy": 1} }, "one task"},
	} {
		gs := train.NewGroups(2)
		if _, err := gs.Add(member("g", "a", true, .1, 1)); err != nil {
			t.Fatal(err)
		}
		bad := member("g", "b", true, .1, 1)
		c.change(bad)
		if g, err := gs.Add(bad); g != nil || !errors.Is(err, train.ErrGroup) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, g, err)
		}
		if g, err := gs.Add(member("g", "b", true, .1, 1)); g == nil || err != nil { // and nothing is lost
			t.Errorf("%s: then %v", name, err)
		}
	}
	if _, err := train.NewGroups(2).Add(nil); !errors.Is(err, train.ErrGroup) {
		t.Error(err)
	}
}

func TestStragglersAreRefused(t *testing.T) {
	gs := train.NewGroups(0) // is 1
	if g, err := gs.Add(member("g", "a", true, .1, 1)); g == nil || err != nil || g.Missing != 0 {
		t.Fatal(g, err)
	}
	if g, err := gs.Add(member("g", "b", true, .1, 1)); g != nil || !errors.Is(err, train.ErrGroup) {
		t.Error(g, err)
	}
	if g, err := gs.Close(1, "g"); g != nil || !errors.Is(err, train.ErrGroup) {
		t.Error(g, err)
	}
	next := member("g", "a", true, .1, 1)
	next.Step = 2 // the same task in the next step is another group
	if g, err := gs.Add(next); g == nil || err != nil {
		t.Error(g, err)
	}
}

// A rollout belongs to the barrier, but nothing keeps its maker from changing it.
func TestRolloutsThatWereChangedSinceAreRefused(t *testing.T) {
	gs := train.NewGroups(2)
	changed := member("g", "a", true, .1, 1)
	if _, err := gs.Add(changed); err != nil {
		t.Fatal(err)
	}
	changed.Seconds = -1
	if g, err := gs.Add(member("g", "b", true, .1, 1)); g != nil || !errors.Is(err, train.ErrGroup) {
		t.Error(g, err)
	}
	if g, err := gs.Close(1, "g"); g != nil || !errors.Is(err, train.ErrGroup) {
		t.Error(g, err)
	}
	if gs, err := gs.Flush(); len(gs) > 0 || !errors.Is(err, train.ErrGroup) {
		t.Error(gs, err)
	}
	changed.Seconds = 1
	if g, err := gs.Add(member("g", "b", true, .1, 1)); g == nil || err != nil {
		t.Error(g, err)
	}
}

func ExampleGroups() {
	groups := train.NewGroups(2)
	for _, r := range []*train.Rollout{
		{Group: "sum", ID: "1", Valid: true, Right: true, USD: cost.Dollars(0.02), Prefer: map[string]float64{"accuracy": 1, "cost": 0.5}},
		{Group: "sum", ID: "2", Failed: "the run was cut off"},
	} {
		whole, err := groups.Add(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		if whole == nil {
			continue // the others are still on their way
		}
		for _, r := range whole.Rollouts {
			fmt.Printf("%s: reward %.1f, advantage %.2f, dropped %q\n", r.ID, r.Reward, r.Advantage, r.Dropped)
		}
	}
	// Output:
	// 1: reward 1.0, advantage 0.71, dropped ""
	// 2: reward 0.0, advantage -0.71, dropped "no_answer"
}
