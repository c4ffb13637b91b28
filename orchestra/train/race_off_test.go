//go:build !race

package train_test

const racing = false
