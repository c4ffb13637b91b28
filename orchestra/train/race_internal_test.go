package train

import "runtime/debug"

// underRace: built with the race detector, which makes rollouts slow.
var underRace = func() bool {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range b.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}()
