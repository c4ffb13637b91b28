package train

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Course is the course of a training run: pass its Add to WithProgress. It is
// not for concurrent use.
type Course struct{ points []Progress }

// Add keeps a point.
func (c *Course) Add(p Progress) { c.points = append(c.points, p) }

// SVG writes the learning curve of each stage but text as a picture: its figure
// (loss, or mean reward) over its steps.
func (c *Course) SVG(w io.Writer) error {
	const width, height, gap = 320, 200, 40
	names := map[string]string{"answers": "posterior over answers: loss", "values": "value of asking: squared error", "gradient": "policy gradient: mean reward", "grpo": "GRPO: mean reward"}
	var b strings.Builder
	n := 0
	for _, stage := range []string{"answers", "values", "gradient", "grpo"} {
		var ps []Progress
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range c.points {
			if p.Stage == stage && p.Of > 0 && p.Figure-p.Figure == 0 {
				ps = append(ps, p)
				low, high = min(low, p.Figure), max(high, p.Figure)
			}
		}
		if len(ps) == 0 {
			continue
		}
		left := gap + n*(width+gap)
		n++
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left, gap-14, names[stage])
		fmt.Fprintf(&b, `<path d="M%d %dv%dh%d" fill="none" stroke="#888"/>`+"\n", left, gap, height, width)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%.4g</text><text x="%d" y="%d">%.4g</text>`+"\n", left+4, gap+12, high, left+4, gap+height-6, low)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%d steps</text>`+"\n", left, gap+height+18, ps[len(ps)-1].Of)
		b.WriteString(`<polyline fill="none" stroke="#1a6" stroke-width="1.5" points="`)
		for _, p := range ps {
			share := 0.5
			if high > low {
				share = (p.Figure - low) / (high - low)
			}
			fmt.Fprintf(&b, "%.1f,%.1f ", float64(left)+float64(width)*float64(p.Done)/float64(p.Of), float64(gap)+float64(height)*(1-share))
		}
		b.WriteString("\"/>\n")
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n%s</svg>\n",
		gap+max(n, 1)*(width+gap), height+2*gap, b.String())
	return err
}
