import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";
import { ofFile } from "./of-file.ts";
import { testStores } from "./servers.ts";
import { type Client, startService } from "./service.ts";
import { entriesOf } from "./service-setup.ts";
import { strictServers } from "./strict-servers.ts";

interface Running {
  readonly service: Client;
  readonly servers: Readonly<Record<string, MockOpenai>>;
}

/** A model of each upstream that is tried there first. */
export const models = {
  openai: "openai/gpt-4o",
  deepseek: "deepseek/deepseek-v4-pro",
  mistral: "mistralai/codestral-2508",
  moonshot: "moonshotai/kimi-k2.6",
  zai: "zai/glm-5.2",
  minimax: "minimax/minimax-m3",
  together: "qwen/qwen3.5-9b",
  fireworks: "qwen/qwen3.8-max",
  groq: "openai/gpt-oss-120b",
  novita: "meta/llama-4-scout",
  xai: "xai/grok-4.7",
} as const satisfies Record<keyof typeof strictServers, string>;
/** An answer as official clients send it back, with the reasoning in this service's form. */
export const answered = {
  role: "assistant",
  content: null,
  refusal: null,
  annotations: [],
  reasoning_content: "Two and two.",
  tool_calls: [{ id: "call_0123456789abcdef", type: "function", function: { name: "add", arguments: "{}" } }],
};

export const conversation = (assistant: object = answered) => ({
  messages: [
    { role: "developer", content: "Be brief." },
    { role: "user", content: "What is 2 + 2?", name: "ada" },
    assistant,
    { role: "tool", tool_call_id: "call_0123456789abcdef", content: "4" },
    { role: "user", content: "And 3 + 3?" },
    { role: "assistant", content: "", refusal: null, reasoning_content: "Hm." },
    { role: "developer", content: "Be kind." },
    { role: "user", content: "Well?" },
  ],
  tools: [{ type: "function", function: { name: "add" } }],
});

/** A service with the shipped catalog, each upstream of which is replaced by its strict mock. */
export function strictUpstreams() {
  const running = ofFile<Running>(
    async (onEnd) => {
      const servers: Record<string, MockOpenai> = {};
      const env: Record<string, string> = { NATIVE_FORMATS_ANY_MODEL: "on" };
      for (const [id, refusal] of Object.entries(strictServers)) {
        const server = await startMockOpenai({ refusal, reportsUsage: id === "mistral" });
        onEnd(() => server.close());
        servers[id] = server;
        env[`${id.toUpperCase()}_API_KEY`] = "sk-operator";
        env[`${id.toUpperCase()}_BASE_URL`] = server.url;
      }
      return { servers, service: await startService(await testStores(), { env, onEnd }) };
    },
    ({ servers }) => {
      for (const server of Object.values(servers)) server.reset();
    },
  );

  async function ask(model: string, more: object) {
    const customer = await running.service.account("100");
    const response = await customer.post("/v1/chat/completions", { model, ...more });
    const text = await response.text();
    const [entry] = response.ok ? await entriesOf(running.service, customer) : [];
    return { status: response.status, text, ignored: response.headers.get("x-ignored-params") ?? "", entry };
  }

  const sentTo = (upstream: string) => running.servers[upstream]?.requests.map(({ body }) => body) ?? [];

  return { running, ask, sentTo };
}
