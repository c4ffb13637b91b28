//go:build !soak

package sqlite_test

import "time"

// How long the long tests are; with -tags soak they are as long as
// length_soak_test.go says.
const (
	shareFor   = 30 * time.Second // at most: it ends when the dollar is spent, after a few seconds
	shareLease = 0.03             // dollars that a lease asks for, at most
	kills      = 8
)
