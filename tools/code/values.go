package code

import (
	"strings"

	"modernc.org/libquickjs"
)

// eval evaluates a script. If it failed, the exception is set.
func (m *machine) eval(code, name string, flags int32) libquickjs.TJSValue {
	c, n := m.put(code), m.put(name)
	if c == 0 || n == 0 {
		return libquickjs.XJS_ThrowOutOfMemory(m.tls, m.ctx)
	}
	defer m.release(m.block(c))
	defer m.release(m.block(n))
	return libquickjs.XJS_Eval(m.tls, m.ctx, c, libquickjs.Tsize_t(len(code)), n, libquickjs.MJS_EVAL_TYPE_GLOBAL|flags)
}

// call calls a function of the prelude. If it failed, the exception is set.
func (m *machine) call(f libquickjs.TJSValue, args ...libquickjs.TJSValue) libquickjs.TJSValue {
	argv := uintptr(0)
	if len(args) > 0 {
		if argv = m.alloc(16); argv == 0 {
			return libquickjs.XJS_ThrowOutOfMemory(m.tls, m.ctx)
		}
		defer m.release(m.block(argv))
		*at[libquickjs.TJSValue](argv) = args[0] // no function takes more than one
	}
	return libquickjs.XJS_Call(m.tls, m.ctx, f, m.undefined, int32(len(args)), argv)
}

// property is a property of an object; if it cannot be read, the exception is
// set.
func (m *machine) property(v libquickjs.TJSValue, name string) libquickjs.TJSValue {
	n := m.put(name)
	if n == 0 {
		return libquickjs.XJS_ThrowOutOfMemory(m.tls, m.ctx)
	}
	defer m.release(m.block(n))
	return libquickjs.XJS_GetPropertyStr(m.tls, m.ctx, v, n)
}

func (m *machine) element(v libquickjs.TJSValue, i uint32) libquickjs.TJSValue {
	return libquickjs.XJS_GetPropertyUint32(m.tls, m.ctx, v, i)
}

// failed reports whether an exception is set.
func (m *machine) failed() bool { return libquickjs.XJS_HasException(m.tls, m.ctx) != 0 }

// exception takes the exception.
func (m *machine) exception() libquickjs.TJSValue {
	return libquickjs.XJS_GetException(m.tls, m.ctx)
}

// string is the text of a property, cut to n bytes, and "" if it has none.
func (m *machine) string(v libquickjs.TJSValue, name string, n int) string {
	p := m.property(v, name)
	if !m.failed() && p != m.undefined {
		if s, ok := m.start(p, n); ok {
			return s
		}
	}
	if m.failed() {
		m.exception()
	}
	return ""
}

// start is a value's text, cut to n bytes.
func (m *machine) start(v libquickjs.TJSValue, n int) (s string, ok bool) {
	ok = m.view(v, func(b []byte) {
		cut := len(b) > n
		if s = strings.ToValidUTF8(string(b[:min(n, len(b))]), ""); cut {
			s += "…"
		}
	})
	return s, ok
}

// describe says what a program threw.
func (m *machine) describe(v libquickjs.TJSValue) *failure {
	if libquickjs.XJS_IsError(m.tls, m.ctx, v) != 0 {
		return &failure{
			name:    m.string(v, "name", 200),
			message: m.string(v, "message", 2000),
			stack:   m.string(v, "stack", 8000),
		}
	}
	f := &failure{name: "uncaught", thrown: true}
	t := m.call(m.text, v)
	if !m.failed() {
		f.message, _ = m.start(t, 2000)
	}
	if m.failed() {
		m.exception()
	}
	if f.message == "null" && m.refused { // without memory for an error, the engine throws null
		return &failure{name: "InternalError", message: outOfMemory}
	}
	return f
}
