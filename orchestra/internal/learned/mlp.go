package learned

// Layer is a dense layer: Out = bias + in · weights. Weights are stored a row
// per input, so that inputs that are zero cost nothing.
type Layer struct {
	In, Out int
	Weights []float32 // In rows of Out
	Bias    []float32 // Out
}

// Forward writes the layer's outputs for x into y.
func (l *Layer) Forward(x, y []float32) {
	y = y[:l.Out]
	copy(y, l.Bias)
	l.Add(x, 0, y)
}

// Add adds to y what the inputs from row first on contribute.
func (l *Layer) Add(x []float32, first int, y []float32) {
	at := first * l.Out
	for _, v := range x {
		if v != 0 {
			axpy(v, l.Weights[at:at+l.Out], y)
		}
		at += l.Out
	}
}

// axpy adds a·x to y. The conversion keeps the product from being fused.
func axpy(a float32, x, y []float32) {
	y = y[:len(x)]
	n := len(x) &^ 3
	for i := 0; i < n; i += 4 {
		u, v := x[i:i+4:i+4], y[i:i+4:i+4]
		v[0] += float32(a * u[0])
		v[1] += float32(a * u[1])
		v[2] += float32(a * u[2])
		v[3] += float32(a * u[3])
	}
	for i := n; i < len(x); i++ {
		y[i] += float32(a * x[i])
	}
}

// dot is the sum of products, in four strands.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	n := len(x) &^ 3
	for i := 0; i < n; i += 4 {
		u, v := x[i:i+4:i+4], y[i:i+4:i+4]
		a += float32(u[0] * v[0])
		b += float32(u[1] * v[1])
		c += float32(u[2] * v[2])
		d += float32(u[3] * v[3])
	}
	for i := n; i < len(x); i++ {
		a += float32(x[i] * y[i])
	}
	return (a + b) + (c + d)
}

// relu cuts what is negative.
func relu(x []float32) {
	for i, v := range x {
		if v < 0 {
			x[i] = 0
		}
	}
}
