package prefs

import (
	"regexp"
	"strings"
	"sync"
)

// A rule is a form of a clause: a pattern over the classes of its words, and what
// it says. Of all rules that fit at a place the one that takes most words counts,
// then the first one.
type rule struct {
	pattern *regexp.Regexp
	say     func(r *reader, m *match)
}

// match is a rule that fits. Groups are those of the pattern, from 1.
type match struct {
	span
	groups [][]token
}

// The parts of patterns. They are written into the patterns below by letter in
// braces.
var parts = []string{
	"{not}", `(?:c?[!z]c?)`,
	"{sub}", `(?:-?D|V|\+?A|\+?G|-3*B)`, // an aspect, however it is put
	"{subs}", `({sub}|[AD](?:,[AD])*,?[&|][AD])`, // "cheap, speed is no matter" is no list
	"{half}", `(-D|\+?A|\+?G)`, // what may stand without a verb: "low cost somewhat"
	"{good}", `(\+?3*G|-3*B|V?-3*D(?:[&|]D)*|D(?:[&|]D)*3*-|\+3*A(?:[&|]A)*|A3*\+|A)`,
	"{bads}", `(3*{bad}(?:,?[&|]3*{bad})*)`,
	"{bad}", `(?:\+?3*B|-3*G|\+3*D|D3*\+|D3+|-3*A|A3*-|V[3+]*)`,
	"{names}", `(N(?:[,&|]+N)*)`,
	"{end}", `[I0]?`,
}

// rules are made once, when first needed.
var rules = sync.OnceValue(func() []rule {
	expand := func(p string) string {
		for range 3 { // parts hold parts
			p = strings.NewReplacer(parts...).Replace(p)
		}
		return p
	}
	var rs []rule
	add := func(say func(*reader, *match), patterns ...string) {
		for _, p := range patterns {
			re := regexp.MustCompile(`^(?:` + expand(p) + `)(?:[,&|b]|$)`)
			re.Longest()
			rs = append(rs, rule{re, say})
		}
	}
	// Names.
	add(sayNever,
		`[cw]*{not}[uw]*{names}{end}`, `[cw]*x[uw]*{names}{end}`, `{names}(?:{not}u*|F|{not}k){end}`, `[cw]*u*n{names}{end}`)
	add(sayOnly,
		`[cuw]*o[uw]*{names}{end}`, `[cuw]*{names}[,&]*o{end}`, `[cw]*{not}[uw]*n{names}{end}`, `xn{names}{end}`)
	add(sayPrefer,
		`([123S]*)[w]*[pulw]+([123S]*)[el]?{names}([123S]*)`, `()(){names}(p|u|up|pu|S|uS|1p|3p|p3)`)
	add(saySuch(sayUse), `w*[pulw]*([Gq]+)[el]{names}`)
	add(saySuch(sayBan), `[cw]*(?:{not}u*|xu*)([Bq]+)[el]{names}{end}`)
	add(sayPreferOver, `[3S]*[w]*[pulw]+{names}v{names}`)
	add(sayPreferNot, `[3S]*[w]*[pulw]+{names}[!z]u?{names}`)
	add(sayMild, `[cw]*[pu1S3]+(?:{not}u*|x){names}{end}`, `{not}3?[pl]+{names}{end}`)
	add(sayAllowed, `cu+{names}`, `{names}(?:cu|c?u?k|ck)`, `ku*{names}`)
	// Aspects that matter, and how much.
	add(sayWeight(littleWeight),
		`c?{not}[hwu]*(?:3m|m3){subs}`, `{not}m{subs}3`, `{subs}{not}(?:3m|m3)`, `{subs}(?:1m|m1|-m|y)`, `1m{subs}|m1{subs}`, `m{subs}1`, `{half}1`,
		`{subs}{not}C`, `h?{not}h+(?:3+{subs}|3*(\+A|\+G))`)
	add(sayWeight(0),
		`c?{not}[hwu]*m0?{subs}0?`, `{not}{subs}m`, `([AD]){not}`, `{subs},?(?:{not}m0?|{not}0?m|i|0m|m0|m!)`, `gu?{subs}`, `[cw]*(?:h?{not}h+)3*{subs}`, `h?c?!c?3?(G(?:\|G)*)`,
		`[cw3]*(Z)`, `{half}(?:0|{not}0)`, `k[uhwc]*{bads}`, `{bads}(?:c?k|{not}m|i)`, `c+[uhw]*{bads}`, `{not}[hw]*m[uhw]*{bads}`, `Ec?{bads}`, `(I)`)
	add(sayWeight(someWeight), `{subs}(?:2m|m2)`, `2m{subs}`, `m2{subs}`, `m{subs}2`, `[wuhpl]*2{good}`, `{half}2`)
	add(sayWeight(muchWeight),
		`[wh]*3*m3*{subs}3*`, `{subs}[hw]*3*m3*`, `{subs}3*C`, `3*p3*{subs}`, `{subs}p`, `[hw]*!h?g{subs}`, `{half}3+`,
		`[wuhpl]*3*[wuh]*{good}`, `[wu]*o[wu]*{good}`, `[wu]*{good}o`, `[wuhp]*{not}[uwh]*{bads}`, `w*xu*{bads}`, `w*x(D(?:[&|]D)*)`, `w*z(D(?:[&|]D)*)`, `w*{not}[wu]*(V(?:[&|]V)*3*D?)`, `({bad}|D){not}k`)
	add(sayMost,
		`[cw]*S+[hwpu]*m?{subs}`, `[cw]*#?mS+{subs}`, `S,{subs}`, `[wh]*m{subs}S+`, `{subs}#?(?:S+m*S*|mS+|m\+)`, `[wuhp]*S{good}`)
	add(saySole, `o[hw]*m{subs}`, `[cw]*mo{subs}`, `{subs},?O`, `O{subs}`, `o{subs}m`)
	add(sayOver, `[pw]*({sub})(?:m?\+?m?v|m?3v)({sub})`)
	add(sayUnder, `({sub})-m?v({sub})`)
	add(sayFirstNot, `[pw]*({sub}),?!({sub})`)
	add(sayNothing, `K`, `{not}m`, `g`, `k`)
	return rs
})

// find applies the rule that fits best at the start of ts, and returns how many
// tokens it took, 0 if none fits.
func (r *reader) find(ts []token) (best *rule, m *match, n int) {
	var b strings.Builder
	for _, t := range ts {
		b.WriteByte(byte(t.class))
	}
	s := b.String()
	if r.tells(ts) {
		return nil, nil, 0
	}
	all := rules()
	for i := range all {
		loc := all[i].pattern.FindStringSubmatchIndex(s)
		if loc == nil || loc[1] <= n {
			continue
		}
		best, n = &all[i], loc[1]
		m = &match{}
		for g := 2; g < len(loc); g += 2 {
			if loc[g] < 0 {
				m.groups = append(m.groups, nil)
				continue
			}
			m.groups = append(m.groups, ts[loc[g]:loc[g+1]])
		}
	}
	return best, m, n
}

// tells reports whether ts begin as no wish does: "I used X" tells of the past,
// and "using X" goes on with what was said before.
func (r *reader) tells(ts []token) bool {
	i := 0
	for i < len(ts) && ts[i].class == cNot {
		i++
	}
	if i+1 >= len(ts) || ts[i].class != cUse || ts[i+1].class != cName {
		return false
	}
	w := strings.ToLower(r.text[ts[i].from:ts[i].to])
	return strings.HasSuffix(w, "ed") || i == 0 && strings.HasSuffix(w, "ing")
}
