//go:build unix

package gpu

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	recordPrefix = "server-"
	recordSize   = 16 << 10 // bytes of a record that are read
	// markName is the variable that a server and all it starts have in their
	// environment, with the token of the server's record.
	markName = "TOOLORCHESTRA_SERVER"
)

// record is a file about a running server. Its owner holds a lock on the file,
// which the system releases when the owner dies, however it dies: no process
// number has to be trusted. The lock is not inherited by the server.
type record struct {
	Token   string    `json:"token"`
	Host    string    `json:"host"` // where it runs
	Boot    string    `json:"boot"` // since which start of the system; "" = unknown
	Owner   int       `json:"owner"`
	Binary  string    `json:"binary"`
	Started time.Time `json:"started"`

	file *os.File
}

// newRecord writes one and holds it.
func newRecord(dir, binary string) (*record, error) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	host, boot := machine()
	r := &record{Token: hex.EncodeToString(id[:]), Host: host, Boot: boot, Owner: os.Getpid(), Binary: binary, Started: time.Now().UTC()}
	content, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	r.file, err = os.OpenFile(filepath.Join(dir, recordPrefix+r.Token+".json"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	// Somebody who looks for stale servers may hold it for a moment. It is
	// written only when we hold it: until then they find it empty and leave it.
	if err = flock(r.file, syscall.LOCK_EX); err == nil {
		_, err = r.file.Write(content)
	}
	if err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// takeRecord opens a record that nobody holds, and holds it. A record without a
// token is one that could not be read.
func takeRecord(name string) (*record, time.Duration, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, 0, err
	}
	info, err := f.Stat()
	var content []byte
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(f, recordSize))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	r, err := parseRecord(content)
	if err != nil {
		r = &record{}
	}
	r.file = f
	return r, time.Since(info.ModTime()), nil
}

// parseRecord reads one. A token of another form than ours is refused, since it
// decides what is killed.
func parseRecord(content []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, err
	}
	if id, err := hex.DecodeString(r.Token); err != nil || len(id) != 16 || r.Token != strings.ToLower(r.Token) {
		return nil, fmt.Errorf("%q is no token", r.Token)
	}
	return r, nil
}

// flock locks an open file.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// mark is the setting in the environment of its processes.
func (r *record) mark() string { return markName + "=" + r.Token }

// kill kills a process if it still is one of the record's. On Linux the handle
// pins the process that is then looked at, so that a number which was given to
// another meanwhile does no harm.
func (r *record) kill(p process) {
	h, err := os.FindProcess(p.pid)
	if err != nil {
		return // it ended
	}
	defer func() { _ = h.Release() }()
	if marked(p.pid, r.Token) {
		_ = h.Signal(syscall.SIGKILL) // it may have ended
	}
}

// abandon gives it up and leaves the file, for another to take.
func (r *record) abandon() { r.file.Close() }

// remove gives it up and removes the file.
func (r *record) remove() {
	_ = os.Remove(r.file.Name()) // at worst it is found later, with nothing alive
	r.file.Close()
}

// machine names this one, and its current start where the system tells.
func machine() (host, boot string) {
	host, _ = os.Hostname() // "" is as good as another name, if it stays
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return host, strings.TrimSpace(string(b))
}
