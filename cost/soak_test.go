//go:build soak

package cost_test

const randomRunsTotal = 1_000_000
