package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// byDomain is an expert that is good at some kinds of tasks.
func byDomain(n *policy.Network, name string, good ...string) models.Info {
	info := models.Info{Name: name, Price: cost.Tokens(1, 4), Skill: models.Skill{Score: 0.5, Tasks: 700, ByDomain: map[string]float64{}}}
	for _, d := range n.Domains() {
		info.Skill.ByDomain[d] = 0.4
	}
	for _, d := range good {
		info.Skill.ByDomain[d] = 0.9
	}
	return info
}

func TestLearnedReadsTheTask(t *testing.T) {
	n, err := policy.Learned()
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Bound()) != 0 || !strings.Contains(n.Facts()["about"], "MMLU-Pro") || n.Facts()["rows"] != "8326" {
		t.Errorf("%v, bound to %v", n.Facts(), n.Bound())
	}
	lawyer, physicist := byDomain(n, "a", "law"), byDomain(n, "b", "physics", "math", "engineering")
	for prompt, want := range map[string]string{
		"A tenant sued the landlord for breach of the lease. Which motion should the court grant?\nOptions: (A) Dismissal (B) Summary judgment (C) Remand (D) None":          "answer-1",
		"A particle of mass 2 kg moves with velocity 3 m/s on a frictionless surface. What is its kinetic energy?\nOptions: (A) 3 J (B) 6 J (C) 9 J (D) 12 J":                "answer-2",
		"Can the defendant be convicted of murder if he lacked the intent?\nOptions: (A) Yes, because of negligence (B) No, because of the statute (C) Yes (D) No":           "answer-1",
		"Find the integral of x squared from 0 to 3, and the derivative of the function at 2.\nOptions: (A) 9 and 4 (B) 27 and 4 (C) 9 and 2 (D) 3 and 4":                    "answer-2",
		"The court admitted the witness's testimony over the objection of hearsay. Was this error?\nOptions: (A) Yes (B) No (C) Only if prejudicial (D) Only if plain error": "answer-1",
	} {
		s := expertState(lawyer, physicist)
		s.Prompt = prompt
		if a := asked(t, n, s); a != want {
			t.Errorf("%.40s… is put to %s", prompt, a)
		}
	}
}

func TestLearnedWeighsAgreement(t *testing.T) {
	n, err := policy.Learned(policy.WithWorth(cost.Dollars(0.05)))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(answers ...string) string {
		var infos []models.Info
		for i := range 4 {
			info := byDomain(n, fmt.Sprint("m", i))
			info.Skill = models.Skill{Score: 0.65, Tasks: 700}
			info.Price = cost.Tokens(1, 4)
			infos = append(infos, info)
		}
		s := expertState(infos...)
		s.Prefer = prefs.Default()
		s.Prompt = "Which of these is meant?\nOptions: (A) one (B) two (C) three (D) four"
		for i, a := range answers {
			reply(s, i, a, 0.0005)
		}
		return asked(t, n, s)
	}
	if ask("A", "A", "A") != "" {
		t.Error("three agree, and a fourth is asked")
	}
	if ask("A", "B") == "" {
		t.Error("two disagree, and nobody else is asked")
	}
}
