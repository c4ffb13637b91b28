package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	js "github.com/google/jsonschema-go/jsonschema"
)

// newRules makes a validator that calls fields by their JSON names.
func newRules() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, ok := jsonName(f)
		if !ok {
			return f.Name
		}
		return name
	})
	return v
}

// guard turns a panic into an error: the validator panics on a tag that it does
// not know or cannot use.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// splitRules splits a validate tag.
func splitRules(tag string) []string {
	if tag == "" || tag == "-" {
		return nil
	}
	return strings.Split(tag, ",")
}

// checkTag runs each rule of a tag alone on a sample value, so that a tag that
// would panic in a call is found now.
func (b *builder) checkTag(f reflect.StructField, tag, path string) error {
	rules := splitRules(tag)
	if len(rules) == 0 {
		return nil
	}
	b.hasAny = true
	v := sample(f.Type)
	for i := 0; i < len(rules); i++ {
		r := rules[i]
		if r == "dive" {
			e := indirect(v)
			switch e.Kind() {
			case reflect.Slice, reflect.Array, reflect.Map:
			default:
				return b.bad(path, "the validate tag %q dives into %s, which has no elements", tag, f.Type)
			}
			if e.Kind() == reflect.Map && i+1 < len(rules) && rules[i+1] == "keys" {
				end := slices.Index(rules[i:], "endkeys")
				if end < 0 {
					return b.bad(path, "the validate tag %q has keys without endkeys", tag)
				}
				i += end
			}
			v = sample(e.Type().Elem())
			continue
		}
		err := guard(func() error {
			err := b.rules.Var(v.Interface(), r)
			var failed validator.ValidationErrors
			if errors.As(err, &failed) {
				return nil // the sample need not pass
			}
			return err
		})
		if err != nil {
			return b.bad(path, "the validate tag %q cannot be used: %v", tag, err)
		}
	}
	return nil
}

// checkStruct runs all rules of a struct on samples.
func (b *builder) checkStruct(t reflect.Type, path string) error {
	err := guard(func() error {
		_ = b.rules.Struct(sample(t).Interface())
		_ = b.rules.Struct(reflect.New(t).Interface())
		return nil
	})
	if err != nil {
		if path == "" {
			path = "In"
		}
		return b.bad(path, "a validate tag cannot be used: %v", err)
	}
	return nil
}

func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// sample makes a value that is not zero, with one element where it can hold
// some. Its type was surveyed, so it does not contain itself.
func sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(sample(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(sample(t.Key()), sample(t.Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			v.Set(reflect.ValueOf("x"))
		}
	case reflect.Struct:
		if special(t) != nil {
			break
		}
		for _, f := range reflect.VisibleFields(t) {
			if _, _, ok := jsonName(f); ok && len(f.Index) == 1 {
				v.FieldByIndex(f.Index).Set(sample(f.Type))
			}
		}
	default:
		switch {
		case v.CanInt():
			v.SetInt(1)
		case v.CanUint():
			v.SetUint(1)
		case v.CanFloat():
			v.SetFloat(1)
		}
	}
	return v
}

// addRules puts the rules that JSON schema has a word for into n. The validator
// enforces the others, and these once more.
func (n *node) addRules(t reflect.Type, rules []string) {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := n.schema
	own := special(t) == nil // rules on special types are about the Go value
	for i, r := range rules {
		name, arg, _ := strings.Cut(r, "=")
		arg = strings.NewReplacer("0x2C", ",", "0x7C", "|").Replace(arg)
		switch name {
		case "dive":
			rest := rules[i+1:]
			if end := slices.Index(rest, "endkeys"); end >= 0 && rest[0] == "keys" {
				rest = rest[end+1:]
			}
			if n.elem != nil {
				n.elem.addRules(t.Elem(), rest)
			}
			return
		case "required":
			if own && !pointer && n.kind == stringKind && s.MinLength == nil {
				s.MinLength = js.Ptr(1)
			}
		case "min", "gte":
			n.bound(arg, own, true, false)
		case "gt":
			n.bound(arg, own, true, true)
		case "max", "lte":
			n.bound(arg, own, false, false)
		case "lt":
			n.bound(arg, own, false, true)
		case "len":
			n.bound(arg, own, true, false)
			n.bound(arg, own, false, false)
		case "oneof":
			s.Enum = nil
			for _, w := range oneOfWords(arg) {
				switch n.kind {
				case stringKind:
					s.Enum = append(s.Enum, w)
				case integerKind:
					s.Enum = append(s.Enum, json.Number(w))
				}
			}
		case "email":
			s.Format = "email"
		case "url", "uri", "http_url", "https_url":
			s.Format = "uri"
		case "uuid", "uuid3", "uuid4", "uuid5":
			s.Format = "uuid"
		case "datetime":
			if arg == "2006-01-02" {
				s.Format = "date"
			}
		case "alphanum":
			s.Pattern = "^[a-zA-Z0-9]+$"
		case "unique":
			s.UniqueItems = n.kind == arrayKind && arg == ""
		}
	}
}

// oneOfWords splits the argument of oneof: words, or phrases in single quotes.
func oneOfWords(arg string) (words []string) {
	for arg = strings.TrimSpace(arg); arg != ""; arg = strings.TrimSpace(arg) {
		end := " "
		if arg[0] == '\'' {
			end, arg = "'", arg[1:]
		}
		w, rest, _ := strings.Cut(arg, end)
		words, arg = append(words, w), rest
	}
	return words
}

// bound sets a lower or upper bound, or an open one.
func (n *node) bound(arg string, own, lower, open bool) {
	f, err := strconv.ParseFloat(arg, 64)
	if err != nil || !own || math.Abs(f) > 1<<53 { // a float64 cannot say it exactly: left to the validator
		return
	}
	count := func(low, high **int) {
		c := int(f)
		switch {
		case open && lower:
			c++
		case open:
			c--
		}
		if c = max(c, 0); lower {
			*low = &c
		} else {
			*high = &c
		}
	}
	s := n.schema
	switch n.kind {
	case stringKind:
		count(&s.MinLength, &s.MaxLength)
	case arrayKind:
		count(&s.MinItems, &s.MaxItems)
	case dictKind:
		count(&s.MinProperties, &s.MaxProperties)
	case integerKind, numberKind:
		switch {
		case lower && open:
			s.ExclusiveMinimum = &f
		case lower:
			s.Minimum = &f
		case open:
			s.ExclusiveMaximum = &f
		default:
			s.Maximum = &f
		}
	}
}

// compile prepares what checking needs of the keywords.
func (n *node) compile() {
	for _, e := range n.schema.Enum {
		n.enum = append(n.enum, fmt.Sprint(e))
	}
	if n.schema.Pattern != "" {
		n.pattern = regexp.MustCompile(n.schema.Pattern) // only addRules sets it
	}
	if n.elem != nil {
		n.elem.compile()
	}
}

// broken words the rules that v breaks, or returns nil.
func (a *arguments) broken(v any) []string {
	if a.rules == nil {
		return nil
	}
	err := guard(func() error { return a.rules.Struct(v) })
	if err == nil {
		return nil
	}
	var failed validator.ValidationErrors
	if !errors.As(err, &failed) {
		return []string{"the rules of this tool cannot be checked: " + err.Error()}
	}
	var out []string
	for _, f := range failed {
		_, path, _ := strings.Cut(f.Namespace(), ".") // the first is the Go type
		out = append(out, path+": "+wording(f.Tag(), f.Param(), f.Kind()))
	}
	return out
}

func wording(tag, param string, k reflect.Kind) string {
	unit := ""
	switch k {
	case reflect.String:
		unit = " characters"
	case reflect.Slice, reflect.Array, reflect.Map:
		unit = " items"
	}
	switch tag {
	case "required":
		return "is required and must not be empty"
	case "min", "gte":
		return "must be at least " + param + unit
	case "max", "lte":
		return "must be at most " + param + unit
	case "gt":
		return "must be more than " + param + unit
	case "lt":
		return "must be less than " + param + unit
	case "len":
		return "must be exactly " + param + unit
	case "oneof":
		return "must be one of: " + param
	case "email":
		return "must be an email address"
	case "url", "uri", "http_url", "https_url":
		return "must be a URL"
	case "unique":
		return "must not hold one value twice"
	}
	if param != "" {
		tag += "=" + param
	}
	return fmt.Sprintf("breaks the rule %q", tag)
}
