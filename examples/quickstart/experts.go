package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// expertsFromEnvironment makes a model of each name in ORCHESTRA_MODELS; none if
// it is not set.
func expertsFromEnvironment(env func(string) string) ([]models.Model, error) {
	var experts []models.Model
	for entry := range strings.SplitSeq(env("ORCHESTRA_MODELS"), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		entry, url, elsewhere := strings.Cut(entry, "@")
		if !elsewhere {
			url = env("OPENAI_BASE_URL")
		}
		name, rates, priced := strings.Cut(entry, "=")
		info := models.Info{MaxOutput: 2000}
		if priced {
			in, out, ok := strings.Cut(rates, "/")
			inUSD, err1 := strconv.ParseFloat(in, 64)
			outUSD, err2 := strconv.ParseFloat(out, 64)
			if !ok || err1 != nil || err2 != nil {
				return nil, fmt.Errorf("ORCHESTRA_MODELS: %q: write the price as USD per million tokens in/out, for example %s=0.25/2", entry, name)
			}
			info.Price = cost.Tokens(inUSD, outUSD)
		}
		m, err := openai.New(name, openai.Config{BaseURL: url, Key: env("OPENAI_API_KEY"), Info: info})
		if err != nil {
			return nil, fmt.Errorf("ORCHESTRA_MODELS: %w", err)
		}
		if !m.Info().Price.Known() {
			return nil, fmt.Errorf("ORCHESTRA_MODELS: the price of %q is not known: write USD per million tokens in/out behind it, for example %s=0.25/2", name, name)
		}
		experts = append(experts, models.Retry(m, models.RetryPolicy{}))
	}
	return experts, nil
}

func budgetFromEnvironment(env func(string) string) (cost.Limit, error) {
	if s := env("ORCHESTRA_BUDGET"); s != "" {
		a, err := cost.ParseAmount(s)
		if err != nil {
			return cost.Limit{}, fmt.Errorf("ORCHESTRA_BUDGET: %w", err)
		}
		return cost.Max(a), nil
	}
	return cost.USD(0.02), nil
}

func describe(experts []models.Model) string {
	if len(experts) == 0 {
		return "none configured (set ORCHESTRA_MODELS), so answers are quoted from the documentation"
	}
	names := make([]string, len(experts))
	for i, m := range experts {
		names[i] = m.Info().Name
	}
	return strings.Join(names, ", ")
}
