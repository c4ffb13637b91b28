//go:build !soak

package cost_test

// randomRunsTotal is how many runs are tried; a million with -tags soak.
const randomRunsTotal = 50_000
