// Package prefs says what a user wants: the preference vector that masks
// offers, is told to policies, and is measured by the preference reward.
package prefs
