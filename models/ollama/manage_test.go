package ollama

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// server returns a client of a server on the loopback.
func server(t testing.TB, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := NewClient(srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestManagement(t *testing.T) {
	var asked []string
	c := server(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var in struct{ Model string }
		_ = json.Unmarshal(b, &in) // none has a body too
		asked = append(asked, r.Method+" "+r.URL.Path+" "+in.Model)
		switch r.URL.Path {
		case "/api/version":
			say(200, `{"version":"0.0.0"}`)(w, r)
		case "/api/tags":
			say(200, `{"models":[{"name":"a:latest","size":7,"digest":"d","modified_at":"2026-12-02T05:37:54.59911167Z"}]}`)(w, r)
		case "/api/ps":
			say(200, `{"models":[]}`)(w, r)
		case "/api/show":
			say(200, `{"template":"{{ .Prompt }}","capabilities":["completion"],"model_info":{"general.architecture":"qwen3"}}`)(w, r)
		case "/api/delete":
			w.WriteHeader(200)
		}
	})
	v, err := c.Version(t.Context())
	if v != "0.0.0" || err != nil {
		t.Errorf("version %q, %v", v, err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "a:latest" || list[0].Size != 7 {
		t.Errorf("list %+v, %v", list, err)
	}
	run, err := c.Running(t.Context())
	if err != nil || len(run) != 0 {
		t.Errorf("running %+v, %v", run, err)
	}
	s, err := c.Show(t.Context(), "a")
	if err != nil || s.Template != RawTemplate || s.ModelInfo["general.architecture"] != "qwen3" {
		t.Errorf("show %+v, %v", s, err)
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if want := []string{"GET /api/version ", "GET /api/tags ", "GET /api/ps ", "POST /api/show a", "DELETE /api/delete a"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

func TestManagementErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		is     error
		retry  bool
		say    string
	}{
		{"no model", 404, `{"error":"model 'a' not found"}`, ErrNoModel, false, "pull it first"},
		{"another site", 200, "<html>", models.ErrMalformed, false, "is BaseURL right?"},
		{"a page that is not ours", 200, "Ollama is running", models.ErrMalformed, false, "is BaseURL right?"},
		{"not JSON", 200, "hm", models.ErrMalformed, true, "hm"},
		{"cut", 200, `{"version"`, models.ErrMalformed, true, ""},
		{"other types", 200, `{"version":[],"modelfile":[],"models":3}`, models.ErrMalformed, true, ""},
		{"an error in the body", 200, `{"error":"boom"}`, errReported, true, "boom"},
		{"nothing", 200, ``, models.ErrMalformed, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := server(t, say(tt.status, tt.body))
			for name, f := range map[string]func() error{
				"version": func() error { _, err := c.Version(t.Context()); return err },
				"list":    func() error { _, err := c.List(t.Context()); return err },
				"running": func() error { _, err := c.Running(t.Context()); return err },
				"show":    func() error { _, err := c.Show(t.Context(), "a"); return err },
			} {
				err := f()
				if e := typed(t, err); !errors.Is(err, tt.is) || e.Retryable != tt.retry || !e.Sent || !strings.Contains(err.Error(), tt.say) {
					t.Errorf("%s: %+v", name, e)
				}
			}
		})
	}
	// A server that answers something else to everything.
	_, err := server(t, say(200, `{"ok":true}`)).Version(t.Context())
	if e := typed(t, err); !errors.Is(err, models.ErrMalformed) || e.Retryable || !strings.Contains(err.Error(), "is BaseURL right?") {
		t.Errorf("got %+v", e)
	}
	c := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"version"`)
	})
	if _, err := c.Version(t.Context()); !errors.Is(err, models.ErrTruncated) || !typed(t, err).Retryable {
		t.Errorf("a body that is cut: %v", err)
	}
}

func TestPull(t *testing.T) {
	body := `{"status":"pulling manifest"}
{"status":"pulling aa","digest":"sha256:aa","total":100}
{"status":"pulling aa","digest":"sha256:aa","total":100,"completed":60}
{"status":"pulling bb","digest":"sha256:bb","total":50,"completed":70}
{"status":"pulling aa","digest":"sha256:aa","total":100,"completed":100}
{"status":"odd","digest":"sha256:cc","total":-5,"completed":-9}
{"status":"writing manifest"}
{"status":"success"}
`
	var seen []PullProgress
	c := server(t, say(200, body))
	if err := c.Pull(t.Context(), "m", func(p PullProgress) { seen = append(seen, p) }); err != nil {
		t.Fatal(err)
	}
	want := []PullProgress{{"pulling manifest", 0, 0}, {"pulling aa", 0, 100}, {"pulling aa", 60, 100}, {"pulling bb", 110, 150}, {"pulling aa", 150, 150}, {"odd", 150, 150}, {"writing manifest", 150, 150}, {"success", 150, 150}}
	if !slices.Equal(seen, want) {
		t.Errorf("got %v", seen)
	}
	if err := c.Pull(t.Context(), "m", nil); err != nil {
		t.Error(err)
	}
}

func TestPullErrors(t *testing.T) {
	manifest := func(s string) string {
		b, _ := json.Marshal("pull model manifest: " + s)
		return "{\"status\":\"pulling manifest\"}\n{\"error\":" + string(b) + "}\n"
	}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		is     error
		retry  bool
		say    string
	}{
		{"not in the library", 200, manifest("file does not exist"), ErrNoModel, false, "check its name"},
		{"not on the hub", 200, manifest(`401: {"error":"Invalid username or password."}`), ErrNoModel, false, "401"},
		{"no such file on the hub", 200, manifest(`400: {"error":"The specified tag is not available in the repository."}`), ErrNoModel, false, ""},
		{"gated", 200, manifest(`403: {"error":"Access to model is restricted"}`), ErrNoModel, false, "restricted"},
		{"refused", 200, manifest("unauthorized: access denied"), ErrNoModel, false, ""},
		{"no name", 400, `{"error":"invalid model name"}`, ErrNoModel, false, ""},
		{"too new", 200, manifest(`412: The model you are attempting to pull requires a newer version of Ollama.`), errOld, false, "update Ollama"},
		{"offline", 200, manifest(`Get "https://hf.co/v2/x": dial tcp: lookup hf.co: no such host`), errRegistry, true, "online?"},
		{"cut on the way", 200, `{"status":"pulling aa","digest":"sha256:aa","total":9,"completed":3}` + "\n" + `{"error":"max retries exceeded: unexpected EOF"}`, errRegistry, true, "goes on where"},
		{"registry down", 200, manifest("503: later"), errReported, true, "503"},
		{"disk", 200, `{"error":"write /models/blobs/x: no space left on device"}`, errDisk, false, "make room"},
		{"no success", 200, `{"status":"writing manifest"}` + "\n", models.ErrTruncated, true, ""},
		{"no JSON", 200, "hm\n", models.ErrMalformed, true, "hm"},
		{"another site", 404, "404 page not found", nil, false, "is BaseURL right?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := server(t, say(tt.status, tt.body)).Pull(t.Context(), "m", func(PullProgress) {})
			if e := typed(t, err); tt.is != nil && !errors.Is(err, tt.is) || e.Retryable != tt.retry || !e.Sent || e.Model != "m" || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %+v: %v", e, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{\"status\":\"pulling manifest\"}\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if err := c.Pull(ctx, "m", func(PullProgress) { cancel() }); !errors.Is(err, context.Canceled) || errors.Is(err, models.ErrTruncated) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCreate(t *testing.T) {
	const blob = "52ee2765e7b61d4976557eb6ae302819423035a0409c9b2e4df23dcfe84a9bc4"
	for _, tt := range []struct{ name, show, want, say string }{
		{"plain", `{"modelfile":"FROM /x/sha256-` + blob + `\n","template":"T"}`, `{"from":"base"}`, ""},
		{"with a parser", `{"modelfile":"FROM /x/sha256-` + blob + `\nPARSER qwen3\n","license":"L"}`, `{"files":{"model.gguf":"sha256:` + blob + `"},"license":"L"}`, ""},
		{"with a parser, newer servers", `{"modelfile":"FROM C:\\models\\sha256-` + blob + `\r\n","renderer":"qwen3"}`, `{"files":{"model.gguf":"sha256:` + blob + `"}}`, ""},
		{"with a parser and no weights", `{"modelfile":"FROM elsewhere","parser":"qwen3"}`, "", "without its parser"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got map[string]any
			c := server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/show" {
					say(200, tt.show)(w, r)
					return
				}
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
				say(200, "{\"status\":\"using existing layer\"}\n{\"status\":\"success\"}\n")(w, r)
			})
			err := c.Create(t.Context(), "alias", "base")
			if tt.want == "" {
				if e := typed(t, err); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), tt.say) || e.Retryable || got != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got["model"] != "alias" || got["template"] != RawTemplate {
				t.Errorf("got %v, %v", got, err)
			}
			want(t, any(without(got, "model", "template", "stream", "name")), tt.want)
		})
	}
	err := server(t, say(404, `{"error":"model 'base' not found"}`)).Create(t.Context(), "alias", "base")
	if !errors.Is(err, ErrNoModel) || typed(t, err).Model != "base" {
		t.Errorf("from nothing: %v", err)
	}
}

// file in memory that has a Close, which nobody may call.
type closable struct {
	*bytes.Reader
	t *testing.T
}

func (c closable) Close() error { c.t.Error("the caller's file was closed"); return nil }

func TestCreateFromBlob(t *testing.T) {
	content := bytes.Repeat([]byte("weights "), 1<<16)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	for _, had := range []bool{false, true} {
		var uploaded []byte
		var asked []string
		c := server(t, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			switch {
			case r.Method == http.MethodHead && !had:
				w.WriteHeader(404)
			case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/blobs/"):
				uploaded = b
				w.WriteHeader(201)
			case r.URL.Path == "/api/create":
				if !strings.Contains(string(b), `"files":{"model.gguf":"`+digest+`"}`) {
					t.Errorf("body %s", b)
				}
				say(200, "{\"status\":\"success\"}\n")(w, r)
			}
		})
		f := closable{bytes.NewReader(content), t}
		_, _ = f.Seek(9, io.SeekStart) // wherever it stands
		if err := c.CreateFromBlob(t.Context(), "m", f); err != nil {
			t.Fatal(err)
		}
		want := []string{"HEAD /api/blobs/" + digest, "POST /api/blobs/" + digest, "POST /api/create"}
		if had {
			want = slices.Delete(want, 1, 2)
		}
		if !slices.Equal(asked, want) || !had && !bytes.Equal(uploaded, content) {
			t.Errorf("asked %q, uploaded %d bytes", asked, len(uploaded))
		}
	}
}

type unseekable struct{ io.Reader }

func (unseekable) Seek(int64, int) (int64, error) { return 0, nil }

func TestCreateFromBlobErrors(t *testing.T) {
	c := server(t, say(500, `{"error":"no space left on device"}`))
	boom := errors.New("boom")
	err := c.CreateFromBlob(t.Context(), "m", unseekable{iotest.ErrReader(boom)})
	if e := typed(t, err); !errors.Is(err, boom) || e.Sent || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a file that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.CreateFromBlob(ctx, "m", bytes.NewReader([]byte("x"))); !errors.Is(err, context.Canceled) || typed(t, err).Sent {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.CreateFromBlob(t.Context(), "m", bytes.NewReader([]byte("x"))); typed(t, err).Status != 500 {
		t.Errorf("got %v", err)
	}
}

func TestEmbed(t *testing.T) {
	var body map[string]any
	m := serve(t, Config{Context: 512, Options: map[string]any{"num_thread": 1}}, warm(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		say(200, `{"model":"m","embeddings":[[0.6,0.8],[-1,0]],"prompt_eval_count":7}`)(w, r)
	}))
	var e models.Embedder
	e, ok := models.As[models.Embedder](m)
	if !ok {
		t.Fatal("a Model is no Embedder")
	}
	got, u, err := e.Embed(t.Context(), []string{"a", "b"})
	if err != nil || len(got) != 2 || got[0][1] != 0.8 || got[1][0] != -1 || u.Input != 7 || !u.Known || u.Requests != 1 || u.Wall <= 0 {
		t.Errorf("got %v, %+v, %v", got, u, err)
	}
	b, _ := json.Marshal(body)
	if string(b) != `{"input":["a","b"],"model":"m","options":{"num_ctx":512,"num_thread":1},"truncate":false}` {
		t.Errorf("body %s", b)
	}
	if got, u, err := m.Embed(t.Context(), nil); got != nil || !u.Known || err != nil {
		t.Errorf("without texts: %v, %+v, %v", got, u, err)
	}
}

func TestEmbedErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		is     error
		retry  bool
	}{
		{"too long", 400, `{"error":"the input length exceeds the context length"}`, models.ErrContextOverflow, false},
		{"too long, newer", 400, `{"error":"input exceeds maximum context length and cannot be truncated further"}`, models.ErrContextOverflow, false},
		{"no embeddings", 501, `{"error":"this model does not support embeddings"}`, errAbility, false},
		{"fewer", 200, `{"embeddings":[[1]]}`, errVectors, true},
		{"more", 200, `{"embeddings":[[1],[1],[1]]}`, errVectors, true},
		{"none", 200, `{"embeddings":null}`, errVectors, true},
		{"of other lengths", 200, `{"embeddings":[[1],[1,2]]}`, errVectors, true},
		{"empty", 200, `{"embeddings":[[],[]]}`, errVectors, true},
		{"zero", 200, `{"embeddings":[[1],[0]]}`, errVectors, true},
		{"no numbers", 200, `{"embeddings":[["a"],[1]]}`, models.ErrMalformed, true},
		{"numbers out of range", 200, `{"embeddings":[[1e99],[1]]}`, models.ErrMalformed, true},
		{"an error in the body", 200, `{"error":"boom"}`, errReported, true},
		{"another site", 200, `<html>`, models.ErrMalformed, false},
		{"cut", 200, `{"embeddings":[[1],`, models.ErrMalformed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{}, warm(t, say(tt.status, tt.body)))
			got, u, err := m.Embed(t.Context(), []string{"a", "b"})
			if e := typed(t, err); got != nil || u.Known || !errors.Is(err, tt.is) || e.Retryable != tt.retry || !e.Sent {
				t.Errorf("got %v, %+v, %+v", got, u, e)
			}
		})
	}
	u, err := func() (bool, error) {
		m := serve(t, Config{}, warm(t, say(200, `{"embeddings":[[1]]}`)))
		_, u, err := m.Embed(t.Context(), []string{"a"})
		return u.Known, err
	}()
	if u || err != nil {
		t.Errorf("without a count: known %v, %v", u, err)
	}
}
