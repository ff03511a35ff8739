package clients

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"google.golang.org/genai"
)

var background = context.Background()
var models = []string{"local/chat", "google/gemini-2.5-flash", "gemini-2.5-flash", "openai/gpt-5.5"}

func newClient(t *testing.T, key string) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(background, &genai.ClientConfig{
		APIKey:      key,
		Backend:     genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: os.Getenv("SERVICE_URL")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func streamed(t *testing.T, client *genai.Client, model string, prompt string) string {
	t.Helper()
	var text strings.Builder
	for chunk, err := range client.Models.GenerateContentStream(background, model, genai.Text(prompt), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(chunk.Text())
	}
	return text.String()
}

func TestWholeAndStreamed(t *testing.T) {
	client := newClient(t, os.Getenv("SERVICE_KEY"))
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			whole, err := client.Models.GenerateContent(background, model, genai.Text("Good morning"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := streamed(t, client, model, "Good morning"); text != whole.Text() || text == "" {
				t.Fatalf("streamed %q, whole %q", text, whole.Text())
			}
		})
	}
}

func TestStreamWithPings(t *testing.T) {
	text := streamed(t, newClient(t, os.Getenv("SERVICE_KEY")), "local/chat", "slow:1800")
	if !strings.Contains(text, "slow") {
		t.Fatalf("streamed %q", text)
	}
}

func TestFunctionCalling(t *testing.T) {
	client := newClient(t, os.Getenv("SERVICE_KEY"))
	city := &genai.Schema{Type: genai.TypeString}
	tool := &genai.FunctionDeclaration{
		Name:        "look_up",
		Description: "The weather of a city",
		Parameters: &genai.Schema{
			Type:       genai.TypeObject,
			Properties: map[string]*genai.Schema{"city": city},
			Required:   []string{"city"},
		},
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{tool}}}}
	for _, model := range []string{"local/chat", "gemini-2.5-flash"} {
		t.Run(model, func(t *testing.T) {
			chat, err := client.Chats.Create(background, model, config, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, err := chat.SendMessage(background, genai.Part{Text: `look_up "Oslo"`})
			if err != nil {
				t.Fatal(err)
			}
			calls := first.FunctionCalls()
			if len(calls) != 1 || calls[0].Name != "look_up" {
				t.Fatalf("called %v", calls)
			}
			result := &genai.FunctionResponse{
				ID:       calls[0].ID,
				Name:     calls[0].Name,
				Response: map[string]any{"output": "rain"},
			}
			second, err := chat.SendMessage(background, genai.Part{FunctionResponse: result})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(second.Text(), "rain") {
				t.Fatalf("said %q", second.Text())
			}
		})
	}
}

func TestCountTokens(t *testing.T) {
	client := newClient(t, os.Getenv("SERVICE_KEY"))
	for _, model := range models[:3] {
		counted, err := client.Models.CountTokens(background, model, genai.Text("Good morning"), nil)
		if err != nil || counted.TotalTokens == 0 {
			t.Fatalf("%s: %v %v", model, counted, err)
		}
	}
}

func TestModels(t *testing.T) {
	client := newClient(t, os.Getenv("SERVICE_KEY"))
	names := map[string]bool{}
	for model, err := range client.Models.All(background) {
		if err != nil {
			t.Fatal(err)
		}
		names[model.Name] = true
	}
	if !names["models/local/chat"] {
		t.Fatalf("listed %v", names)
	}
}

func TestErrors(t *testing.T) {
	for _, each := range []struct {
		key, model string
		code       int
	}{{os.Getenv("SERVICE_KEY"), "gemini-none", 404}, {"live_wrong", "local/chat", 401}} {
		_, err := newClient(t, each.key).Models.GenerateContent(background, each.model, genai.Text("Hello"), nil)
		var refused genai.APIError
		if !errors.As(err, &refused) || refused.Code != each.code {
			t.Fatalf("%s: %v", each.model, err)
		}
	}
}
