package policy

import (
	"bytes"
	_ "embed"
)

// network.net is what train.Fit with its defaults and seed 1 makes of
// 8,326 rows of recorded MMLU-Pro answers; its header says so too.
//
//go:embed network.net
var learnedFile []byte

// Learned is Embedded with options. Its network goes by descriptors alone, so it
// takes any experts: give them a measured Skill (Score, Tasks and, by
// Network.Domains, ByDomain), or cards (WithCards), and it knows whom to ask;
// without, all are alike to it but in price. It was learned from multiple-choice
// questions. Short answers are compared as texts: experts that word one answer
// differently do not agree in its eyes. Answers of more than a dozen words are not
// compared.
func Learned(opts ...NetworkOption) (*Network, error) {
	return ReadNetwork(bytes.NewReader(learnedFile), opts...)
}
