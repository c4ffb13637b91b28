package gpu

import (
	"bytes"
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

const (
	keptLog  = 64 << 10
	keptLine = 4 << 10 // what of a line is looked at
)

// serverLog keeps the end of what a server writes, in memory: a server that
// never stops writing fills neither that nor a disk. On its way it finds the
// address that the server listens on.
type serverLog struct {
	listening chan string // gets the URL, once

	mu    sync.Mutex
	ring  [keptLog]byte
	wrote int64  // bytes in all
	line  []byte // the current line's beginning, until the address is found
	found bool
}

func newServerLog() *serverLog { return &serverLog{listening: make(chan string, 1)} }

// Write never fails.
func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(b)
	n := len(b)
	if skip := len(b) - keptLog; skip > 0 {
		b = b[skip:]
		l.wrote += int64(skip)
	}
	for len(b) > 0 {
		m := copy(l.ring[l.wrote%keptLog:], b)
		b, l.wrote = b[m:], l.wrote+int64(m)
	}
	return n, nil
}

// look searches the lines for the address.
func (l *serverLog) look(b []byte) {
	for !l.found && len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), keptLine-len(l.line))]...)
		b = rest
		if !ended {
			return
		}
		if url, ok := listenURL(string(l.line)); ok {
			l.found = true
			l.listening <- url
		}
		l.line = l.line[:0]
	}
}

// tail is the last n bytes as text, without the part of a line that they begin
// with.
func (l *serverLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = int(min(max(int64(n), 0), l.wrote, keptLog))
	b := make([]byte, 0, n)
	for at := l.wrote - int64(n); at < l.wrote; {
		from := at % keptLog
		part := l.ring[from:min(keptLog, from+l.wrote-at)]
		b, at = append(b, part...), at+int64(len(part))
	}
	if int64(n) < l.wrote {
		// It begins inside a line, most likely; one line alone is better than none.
		if _, rest, ok := bytes.Cut(b, []byte("\n")); ok && len(rest) > 0 {
			b = rest
		}
	}
	return strings.ToValidUTF8(string(b), "?")
}

// portTaken reports whether the log ends with the complaint that the port is in
// use. Servers say it in English on all systems but Windows, which has its own text.
func (l *serverLog) portTaken() bool {
	end := l.tail(errorLog)
	return strings.Contains(end, "address already in use") || strings.Contains(end, "Only one usage of each socket address")
}

var listenLine = regexp.MustCompile(`Listening on ([^\s"]+)`)

// listenURL finds the address in a line such as
// `… msg="Listening on 127.0.0.1:42595 (version 0.17.4)"`. A server that listens
// on all interfaces is reached by the loopback one.
func listenURL(line string) (string, bool) {
	m := listenLine.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	addr, err := netip.ParseAddrPort(m[1])
	if err != nil || addr.Port() == 0 {
		return "", false
	}
	ip := addr.Addr()
	switch {
	case ip == netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		ip = netip.IPv6Loopback()
	}
	if ip.Zone() != "" {
		return "", false // it would have to be escaped; Ollama logs none
	}
	return "http://" + netip.AddrPortFrom(ip, addr.Port()).String(), true
}
