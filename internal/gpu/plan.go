package gpu

import (
	"fmt"
	"slices"
	"strings"
)

// quantisation is one conversion of Orchestrator-8B: a Qwen3 of 8 billion
// parameters in 36 layers, with 8 KV heads of 128.
type quantisation struct {
	name      string
	weights   int64 // bytes
	embedding int64 // bytes of the token embedding, which stays in the machine's memory
}

// gibibytes keeps the tables below readable.
func gibibytes(x float64) int64 { return int64(x * (1 << 30)) }

// quantisations, the best first. Their sizes are those of the published files.
var quantisations = []quantisation{
	{"F16", gibibytes(15.26), gibibytes(1.16)},
	{"Q8_0", gibibytes(8.11), gibibytes(0.62)},
	{"Q6_K", gibibytes(6.26), gibibytes(0.48)},
	{"Q5_K_M", gibibytes(5.44), gibibytes(0.40)},
	{"Q4_K_M", gibibytes(4.68), gibibytes(0.33)},
}

// kvTypes are how the attention's keys and values are kept, the best first, with
// their bytes per token: 2 × 36 layers × 8 heads × 128 × bytes of a number; and
// the compute buffer, as a line through what was measured at 8k to 40k tokens.
var kvTypes = []kvType{
	{"f16", 144 << 10, gibibytes(0.124), 2.6e-6},
	{"q8_0", 144 << 10 * 17 / 32, gibibytes(0.07), 6.1e-6},
	{"q4_0", 144 << 10 * 9 / 32, gibibytes(0.07), 6.1e-6},
}

type kvType struct {
	name     string
	perToken int64
	buffer   int64   // bytes
	growth   float64 // GiB of buffer per token
}

// perDevice is what a server keeps free on each GPU, whatever it loads.
const perDevice = 457 << 20

// contexts are what is tried, in tokens: all that the model was trained for
// first.
var contexts = []int{40960, 32768, 24576, 16384, 8192}

const (
	mostContext  = 40960
	leastContext = 8192
)

// Want is what to plan for. The zero Want is the best that fits.
type Want struct {
	Quant      string // "" = the best that fits
	Weights    int64  // bytes of a file that is none of the known ones; 0 = by Quant
	Context    int    // tokens of prompt and output; 0 = 40,960
	MinContext int    // do not shrink below this; 0 = 8,192, or Context if that is less
	KV         string // "" = f16, or q8_0 if that is what lets more context fit
	Parallel   int    // decisions at once; 0 = 1
	Overhead   int64  // bytes to leave free on each GPU, beside what a server leaves free itself
	CPU        bool   // the processor will do if no GPU does
	Fixed      bool   // the server is there already: its KV type (taken to be f16) cannot be chosen
	Held       int64  // bytes of GPU memory that the server's models take now: it gives them up for another
}

// Plan is what to load, and where.
type Plan struct {
	Quant    string
	Weights  int64 // bytes of the file
	Context  int   // tokens
	KV       string
	Parallel int
	Devices  []Device // those that are used; none on the processor
	VRAM     int64    // bytes on all GPUs together, with what a server keeps free
	CPU      bool
	Split    bool     // over several GPUs
	Why      []string // what was chosen and why, for people
}

// NoFitError says that no GPU holds the model.
type NoFitError struct {
	Devices []Device
	Usable  int64 // bytes of the largest place
	Need    int64 // bytes of the smallest plan that was allowed
	Quant   string
	Context int
	KV      string
	Fits    string // what would fit; "" = nothing
}

// Error says what was needed, what there is, and what to do.
func (e *NoFitError) Error() string {
	if len(e.Devices) == 0 {
		return "no GPU was found: use policy.Embedded, a server elsewhere, or allow the processor with policy.WithCPU"
	}
	s := fmt.Sprintf("the smallest allowed plan (%s, %d tokens, KV %s) takes %s, and %s can be used of %s",
		e.Quant, e.Context, e.KV, gib(e.Need), gib(e.Usable), names(e.Devices))
	if e.Fits != "" {
		return s + ": " + e.Fits + " would fit"
	}
	return s + ": free GPU memory, use a server elsewhere, or allow the processor with policy.WithCPU"
}

// ArgumentError is a Want that cannot be meant.
type ArgumentError struct{ Field, Fix string }

// Error says what to change.
func (e *ArgumentError) Error() string { return "gpu: Want." + e.Field + ": " + e.Fix }

// MakePlan chooses what to load on the devices: first as much context as was
// wanted, then the exact KV type, then one GPU rather than several, then the
// best quantisation. What does not fit gets a smaller context; if nothing does,
// it is a *NoFitError, never a quiet run on the processor.
func MakePlan(f Found, w Want) (Plan, error) {
	o, err := w.options()
	if err != nil {
		return Plan{}, err
	}
	f.Devices = givenUp(f.Devices, w.Held)
	if p, ok := o.best(f.Devices); ok {
		return p, nil
	}
	if w.CPU {
		return o.onCPU(f), nil
	}
	return Plan{}, o.noFit(f, w)
}

// options is what a plan may choose among.
type options struct {
	quants   []quantisation
	kv       []kvType
	contexts []int
	parallel int
	overhead int64
	wanted   int
	least    int
	asked    bool // for that context
}

func (w Want) options() (options, error) {
	o := options{quants: quantisations, kv: kvTypes[:2], parallel: max(w.Parallel, 1), overhead: max(w.Overhead, 0), wanted: w.Context, asked: w.Context != 0}
	switch i := slices.IndexFunc(quantisations, func(q quantisation) bool { return strings.EqualFold(q.name, w.Quant) }); {
	case w.Weights > 0: // its embedding is not known: all of it is counted
		o.quants = []quantisation{{w.Quant, w.Weights, 0}}
	case w.Quant == "":
	case i < 0:
		return o, &ArgumentError{"Quant", fmt.Sprintf("%q is not known: use F16, Q8_0, Q6_K, Q5_K_M or Q4_K_M", w.Quant)}
	default:
		o.quants = quantisations[i : i+1]
	}
	kv := w.KV
	if kv == "" && w.Fixed {
		kv = "f16"
	}
	if kv != "" {
		i := slices.IndexFunc(kvTypes, func(k kvType) bool { return k.name == kv })
		if i < 0 {
			return o, &ArgumentError{"KV", fmt.Sprintf("%q is not known: use f16, q8_0 or q4_0", kv)}
		}
		o.kv = kvTypes[i : i+1]
	}
	switch {
	case w.Parallel > 1024: // tokens × bytes must not overflow
		return o, &ArgumentError{"Parallel", "use at most 1024"}
	case w.Context < 0 || w.MinContext < 0 || w.Parallel < 0:
		return o, &ArgumentError{"Context", "tokens and numbers of decisions are positive, or 0 for the default"}
	case w.Context > mostContext:
		return o, &ArgumentError{"Context", fmt.Sprintf("%d is more than the model was trained for: use at most %d", w.Context, mostContext)}
	case w.Context == 0:
		o.wanted = mostContext
	}
	least := w.MinContext
	if least == 0 {
		least = leastContext
	}
	least = min(least, o.wanted)
	o.least = least
	o.contexts = []int{o.wanted}
	for _, c := range contexts {
		if c < o.wanted && c >= least {
			o.contexts = append(o.contexts, c)
		}
	}
	if last := o.contexts[len(o.contexts)-1]; last > least {
		o.contexts = append(o.contexts, least)
	}
	return o, nil
}

// size is what a choice takes on one GPU, without what servers keep free.
func size(q quantisation, k kvType, context, parallel int) (all, buffer int64) {
	tokens := int64(context) * int64(parallel)
	buffer = k.buffer + int64(k.growth*float64(context)*(1<<30))
	return q.weights - q.embedding + tokens*k.perToken + buffer, buffer
}

// usable is what of a device's memory a plan counts on: a fourteenth of what is
// free now may be gone when the model is loaded, and of unified memory the
// system needs a third.
func usable(d Device, overhead int64) int64 {
	free := d.Free - d.Free/14
	if d.Unified {
		free = min(free, d.Total*2/3)
	}
	return free - overhead
}
