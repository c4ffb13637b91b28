package ollama

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// roundTrip is a server without a network.
type roundTrip func(*http.Request) (status int, body string, err error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A server that could not read a call may be stuck from then on: the next call
// finds out, and has the model loaded anew if so.
func TestStuckRunner(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stuck bool
		want  []string // after the call that failed
		took  time.Duration
	}{
		{"alive", false, []string{"probe", "load", "chat"}, 0},
		{"stuck", true, []string{"probe", "unload", "ps", "ps", "load", "chat"}, aliveTime + lookEvery},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				m, err := New("m", Config{Info: models.Info{Tools: true}, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (int, string, error) {
					var in struct {
						Prompt  string
						Keep    json.RawMessage `json:"keep_alive"`
						Options struct {
							Ctx     int `json:"num_ctx"`
							Predict int `json:"num_predict"`
						}
					}
					if r.Body != nil {
						if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
							t.Error(err)
						}
					}
					switch what := strings.TrimPrefix(r.URL.Path, "/api/"); {
					case what == "chat":
						asked = append(asked, "chat")
						if len(asked) == 2 {
							return 500, `{"error":"failed to parse JSON: unexpected end of JSON input"}`, nil
						}
						return 200, chat("x") + end, nil
					case what == "ps":
						asked = append(asked, "ps")
						if slices.Index(asked, "ps") == len(asked)-1 {
							return 200, `{"models":[{"name":"m","digest":"d"}]}`, nil
						}
						return 200, `{"models":[]}`, nil
					case what == "tags":
						return 200, `{"models":[{"name":"m","digest":"d"}]}`, nil
					case in.Prompt != "":
						asked = append(asked, "probe")
						if in.Options.Ctx != DefaultContext || in.Options.Predict != 1 {
							t.Errorf("options %+v", in.Options)
						}
						if tt.stuck {
							<-r.Context().Done()
							return 0, "", r.Context().Err()
						}
						return 200, `{"response":"","done":true}`, nil
					case string(in.Keep) == `"0s"`:
						asked = append(asked, "unload")
						return 200, `{"done":true,"done_reason":"unload"}`, nil
					}
					asked = append(asked, "load")
					return 200, loaded, nil
				})}})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, Tools: tools}); !errors.Is(err, errCall) {
					t.Fatal(err)
				}
				start := time.Now()
				asked = asked[:2]
				if _, err := m.Generate(t.Context(), &models.Request{Messages: hello}); err != nil {
					t.Error(err)
				}
				if got := asked[2:]; !slices.Equal(got, tt.want) || time.Since(start) != tt.took {
					t.Errorf("asked for %q in %s", got, time.Since(start))
				}
				if _, err := m.Generate(t.Context(), &models.Request{Messages: hello}); err != nil || asked[len(asked)-2] != "chat" {
					t.Errorf("and once more: %q, %v", asked, err)
				}
			})
		})
	}
}
