package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const (
	probeTimeout = 5 * time.Second
	probeBody    = 64 << 10 // bytes of an answer that are read
)

// ProbeServer asks the server at an address such as "http://127.0.0.1:11434" for
// its version. The errors are of type *ServerError: ErrServerConfig for what is
// no such address, ErrServerRefused, ErrServerForeign if it is not Ollama that
// answers, and ErrServerNotReady if nothing does within 5 seconds or the
// context's time, or it hangs up. No proxy is used, and no redirect followed.
func ProbeServer(ctx context.Context, address string) (version string, err error) {
	fail := func(kind, cause error) (string, error) {
		return "", &ServerError{Kind: kind, URL: address, Err: cause}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fail(ErrServerConfig, errors.New("no address of a server: write one like http://127.0.0.1:11434"))
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("api", "version").String(), nil)
	if err != nil {
		return fail(ErrServerConfig, err)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: probeBody},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return fail(probeKind(ctx, err), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, probeBody))
	switch {
	case err != nil:
		return fail(probeKind(ctx, err), err)
	case resp.StatusCode != http.StatusOK:
		return fail(ErrServerForeign, fmt.Errorf("it answers GET /api/version with %s", resp.Status))
	}
	var answer struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(body, &answer) != nil || !plausible(answer.Version) {
		return fail(ErrServerForeign, errors.New("it answers GET /api/version with something else than a version"))
	}
	return answer.Version, nil
}

// probeKind tells silence, an address where nothing is, and one where something
// speaks another language.
func probeKind(ctx context.Context, err error) error {
	op, dialing := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return ErrServerNotReady
	case dialing && op.Op == "dial":
		return ErrServerRefused
	}
	return ErrServerForeign
}

// plausible reports whether a server may call itself that.
func plausible(version string) bool {
	return version != "" && len(version) <= 64 &&
		strings.IndexFunc(version, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) }) < 0
}
