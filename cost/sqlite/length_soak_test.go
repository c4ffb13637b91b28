//go:build soak

package sqlite_test

import "time"

const (
	shareFor   = 5 * time.Minute
	shareLease = 0.00018
	kills      = 50
)
