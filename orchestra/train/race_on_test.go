//go:build race

package train_test

// racing: arithmetic takes some twenty times as long.
const racing = true
