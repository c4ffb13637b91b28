//go:build unix

package gpu

import (
	"path"
	"strconv"
	"strings"
)

// parsePS reads lines of pid, group, state, command and environment, as ps
// prints them on the systems without /proc, and returns what ours does. Since ps
// prints arguments and environment as one text, a process with the token counts
// only if its program's name is a server's or runner's: somebody may be
// searching for the token.
func parsePS(out []byte, group int, token string) []process {
	var found []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[2], "Z") {
			continue
		}
		pid, err1 := strconv.Atoi(f[0])
		its, err2 := strconv.Atoi(f[1])
		if err1 != nil || err2 != nil || pid <= 1 {
			continue
		}
		p := process{pid: pid, group: its, command: f[3]}
		isMarked := false
		for _, word := range f[4:] {
			isMarked = isMarked || token != "" && word == markName+"="+token
		}
		if group != 0 && its == group || isMarked && strings.Contains(path.Base(f[3]), "llama") {
			found = append(found, p)
		}
	}
	return found
}
