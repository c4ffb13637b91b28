package gpu

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	rest := " 0 0 0 0 0 0 0 0 0 0 0 20 0 "
	for _, tt := range []struct {
		name, stat string
		group      int
		alive, bad bool
	}{
		{"runs", "7 (ollama) S 1 5 5 0 -1" + rest[:len(rest)-6] + "20 0 9 0 123", 5, true, false},
		{"a name that looks like more", "7 (a) Z 1 9 (x) R 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123", 5, true, false},
		{"dead", "7 (ollama) Z 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123", 5, false, false},
		{"dead, but a thread is not", "7 (ollama) Z 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 123", 5, true, false},
		{"gone", "7 (ollama) X 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123", 5, false, false},
		{"nothing", "", 0, false, true},
		{"no name", "7 ollama S 1 5", 0, false, true},
		{"cut", "7 (ollama) S 1 5", 0, false, true},
		{"no number", "7 (ollama) S 1 x 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123", 0, false, true},
	} {
		group, alive, err := parseStat([]byte(tt.stat))
		if group != tt.group || alive != tt.alive || (err != nil) != tt.bad {
			t.Errorf("%s: %d, %v, %v", tt.name, group, alive, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (ollama) S 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123"))
	f.Add([]byte(")))"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if group, alive, err := parseStat(stat); err != nil && (alive || group != 0) {
			t.Errorf("%q: %d, %v with %v", stat, group, alive, err)
		}
	})
}

// The other systems' way to find processes, with this system's ps.
func TestParsePS(t *testing.T) {
	s, id, _ := start(t, "works")
	out, err := exec.Command("ps", "axwwe", "-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "command=").Output()
	if err != nil {
		t.Skip("no ps here to compare with:", err)
	}
	found := parsePS(out, s.family.group, "")
	if len(found) != 3 {
		t.Errorf("found %v in group %d, want the guard and %v", found, s.family.group, living(t, id))
	}
	const token = "00112233445566778899aabbccddeeff"
	mark := markName + "=" + token
	text := strings.Join([]string{
		"10 10 S /opt/ollama serve PATH=/bin " + mark + " HOME=/root",
		"11 10 S+ /opt/ollama runner " + mark,
		"12 12 S /Applications/llama-server --port 1 " + mark,
		"13 10 Z (ollama) " + mark,
		"14 14 S grep " + mark,
		"15 15 S /opt/ollama serve " + mark + "0",
		"16 16 S /opt/ollama serve",
		"1 10 S /opt/ollama " + mark,
		"x 10 S /opt/ollama " + mark, "", "17",
	}, "\n")
	for _, tt := range []struct {
		group int
		token string
		want  string
	}{
		{0, token, "10,11,12"}, {10, "", "10,11"}, {12, token, "10,11,12"}, {16, token, "10,11,12,16"}, {0, "", ""},
	} {
		var got []string
		for _, p := range parsePS([]byte(text), tt.group, tt.token) {
			pid, _, _ := strings.Cut(p.String(), " ")
			got = append(got, pid)
		}
		if strings.Join(got, ",") != tt.want {
			t.Errorf("group %d, token %q: %v, want %s", tt.group, tt.token, got, tt.want)
		}
	}
}

func FuzzParsePS(f *testing.F) {
	f.Add([]byte("10 10 S /opt/ollama serve TOOLORCHESTRA_SERVER=x"), 10, "x")
	f.Fuzz(func(t *testing.T, out []byte, group int, token string) {
		for _, p := range parsePS(out, group, token) {
			if p.pid <= 1 || group == 0 && token == "" {
				t.Errorf("found %v", p)
			}
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	for _, token := range []string{strings.Repeat("ab", 16), "", "AB"} {
		b, err := json.Marshal(record{Token: token, Owner: os.Getpid()})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := parseRecord(content)
		if err == nil && (len(r.Token) != 32 || strings.Trim(r.Token, "0123456789abcdef") != "") {
			t.Errorf("%q is taken for a token", r.Token)
		}
	})
}
