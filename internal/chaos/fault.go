package chaos

import (
	"fmt"
	"time"
)

// Kind names what goes wrong.
type Kind string

// On the wire: of Proxy and Transport.
const (
	Refuse     Kind = "refuse"      // the connection is reset before anything was read
	Silence    Kind = "silence"     // half-open: accepted, and then nothing until the client leaves
	Lost       Kind = "lost"        // the server did its work, then the connection is reset
	SlowHeader Kind = "slow-header" // the reply's head comes a few bytes at a time
	SlowBody   Kind = "slow-body"   // so does its body
	Stall      Kind = "stall"       // nothing comes after a certain byte, and no end
	Cut        Kind = "cut"         // the connection is closed after a certain byte
	End        Kind = "end"         // the reply ends after a certain byte, and nothing in HTTP says that it was cut
	Reset      Kind = "reset"       // the connection is reset after a certain byte
	Garbage    Kind = "garbage"     // some bytes are others
	Repeat     Kind = "repeat"      // a chunk comes twice
	Drop       Kind = "drop"        // a chunk is missing
	Status     Kind = "status"      // a status that is none of the server's: 429, 500, 502, 503, 504, 529, with or without Retry-After
	Portal     Kind = "portal"      // status 200, and the page of a proxy
	Empty      Kind = "empty"       // status 200, and nothing
)

// Of any call: the whole process is stopped for a while, and then the clock is
// far ahead. Only drawn where Config.Jump is set.
const Jump Kind = "jump"

// Of Model.
const (
	Failure     Kind = "failure"      // an error that is of no known type
	Hang        Kind = "hang"         // nothing happens until the context ends
	Deaf        Kind = "deaf"         // it takes its time, and ignores the context
	Panic       Kind = "panic"        // a panic
	Nothing     Kind = "nothing"      // no response and no error
	Truncate    Kind = "truncate"     // a stream that is cut: models.ErrTruncated with a Partial
	NoUsage     Kind = "no-usage"     // the usage is not told
	LyingUsage  Kind = "lying-usage"  // the usage is a multiple of the truth
	BadArgs     Kind = "bad-args"     // the arguments of calls are cut off
	SameIDs     Kind = "same-ids"     // all calls have one id
	InvalidText Kind = "invalid-text" // the text is not UTF-8, or forges control tokens
)

// Of Tool, beside Failure, Hang, Deaf, Panic, InvalidText.
const (
	Fatal Kind = "fatal" // an error that ends the run (tools.Fatal)
	Huge  Kind = "huge"  // a result of megabytes
)

// Of Checkpoint and Writer.
const (
	DiskFull Kind = "disk-full" // no space is left, from then on
	Unsynced Kind = "unsynced"  // it was written, but whether it will stay is unknown
)

// Fault is one thing that goes wrong. The zero Fault is nothing.
type Fault struct {
	Kind       Kind
	At         int           // byte or chunk of the reply where it strikes, from 0
	Bytes      []byte        // of Garbage: what stands there instead
	Wait       time.Duration // of slow ones, in all; of Deaf and Jump
	Code       int           // of Status
	RetryAfter string        // of Status: the header; "" = none
}

// String describes the fault for the log of a test.
func (f Fault) String() string {
	switch f.Kind {
	case "":
		return "ok"
	case SlowHeader, SlowBody, Deaf, Jump:
		return fmt.Sprintf("%s(%v)", f.Kind, f.Wait)
	case Stall, Cut, End, Reset, Repeat, Drop, Truncate:
		return fmt.Sprintf("%s(at %d)", f.Kind, f.At)
	case Garbage:
		return fmt.Sprintf("garbage(%q at %d)", f.Bytes, f.At)
	case Status:
		return fmt.Sprintf("status(%d, Retry-After %q)", f.Code, f.RetryAfter)
	}
	return string(f.Kind)
}

var (
	wireKinds  = []Kind{Refuse, Silence, Lost, SlowHeader, SlowBody, Stall, Cut, End, Reset, Garbage, Repeat, Drop, Status, Portal, Empty, Jump}
	modelKinds = []Kind{Failure, Hang, Deaf, Panic, Nothing, Truncate, NoUsage, LyingUsage, BadArgs, SameIDs, InvalidText, Status, Jump}
	toolKinds  = []Kind{Failure, Fatal, Hang, Deaf, Panic, InvalidText, Huge, Jump}
	diskKinds  = []Kind{DiskFull, Unsynced}
)
