package gpu

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestServerLogKeepsTheEnd(t *testing.T) {
	var all strings.Builder
	l := newServerLog()
	for i := range 20000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		for _, n := range []int{0, 1, 7, 100, keptLog, 10 * keptLog} {
			if i%977 != 0 && i > 5 {
				continue
			}
			got := l.tail(n)
			if len(got) > min(n, keptLog) || !strings.HasSuffix(all.String(), got) {
				t.Fatalf("after %d lines, tail(%d) = %q", i+1, n, got)
			}
			if n >= 100 && !strings.HasPrefix(got, "line ") {
				t.Fatalf("after %d lines, tail(%d) begins inside a line: %.20q", i+1, n, got)
			}
			if n >= 100 && len(got) < min(n, keptLog, all.Len())-len(line) {
				t.Fatalf("after %d lines, tail(%d) has %d bytes only", i+1, n, len(got))
			}
		}
	}
	if got := l.tail(-1); got != "" {
		t.Errorf("tail(-1) = %q", got)
	}
}

func TestServerLogTakesAnyWrite(t *testing.T) {
	l := newServerLog()
	big := strings.Repeat("abcdefgh", keptLog/4) + "\xff"
	if n, err := l.Write([]byte(big)); n != len(big) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if got := l.tail(keptLog); len(got) != keptLog || !strings.HasSuffix(got, "fgh?") {
		t.Errorf("%d bytes are kept, the last %q", len(got), got[len(got)-8:])
	}
}

func TestServerLogFindsTheAddress(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`time=2026-01-01 level=INFO source=routes.go:1718 msg="Listening on 127.0.0.1:42595 (version 0.17.4)"`, "http://127.0.0.1:42595"},
		{`msg="Listening on [::]:11434 (version 0.30.1)"`, "http://[::1]:11434"},
		{`msg="Listening on 0.0.0.0:11434 (version 0.30.1)"`, "http://127.0.0.1:11434"},
		{`msg="Listening on 10.1.2.3:80 (version 0.30.1)"`, "http://10.1.2.3:80"},
		{`Listening on localhost:80`, ""},
		{`Listening on 127.0.0.1:0`, ""},
		{`Listening on 127.0.0.1:99999`, ""},
		{`Listening on 127.0.0.1`, ""},
		{`Listening on `, ""},
		{`msg="Listening on [fe80::1%eth0]:80 (version 0.30.1)"`, ""},
	} {
		got, ok := listenURL(tt.line)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.line, got, ok, tt.want)
		}
	}
	l := newServerLog()
	for _, b := range []byte("nothing\n" + strings.Repeat("x", 3*keptLine) + "\nmsg=\"Listening on 127.0.0.1:1 (version 1)\"\nListening on 127.0.0.1:2\n") {
		if _, err := l.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-l.listening; got != "http://127.0.0.1:1" {
		t.Errorf("byte by byte: %q", got)
	}
}

func FuzzListenURL(f *testing.F) {
	f.Add(`msg="Listening on 127.0.0.1:42595 (version 0.17.4)"`)
	f.Add("Listening on [::]:11434")
	f.Add("Listening on [fe80::1%25]:1")
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := listenURL(line)
		if !ok {
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if a, err := netip.ParseAddrPort(u.Host); err != nil || a.Addr().IsUnspecified() || u.Path != "" {
			t.Fatalf("%q is no address to call: %v", s, err)
		}
	})
}
