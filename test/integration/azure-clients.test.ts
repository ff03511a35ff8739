import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { type MockAzure, startMockAzure } from "../support/mock-azure.ts";
import { mockApplication, mockSecret, mockTenant } from "../support/mock-entra.ts";
import { mockText } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import {
  chatClient,
  completionsClient,
  geminiClient,
  messagesClient,
  responsesClient,
} from "../support/official-clients.ts";
import { asking, catalogWith, entriesOf, type Running, startWithProvider } from "../support/service-setup.ts";

const model = (id: string, upstreams: readonly object[]) => ({
  id,
  name: id,
  owned_by: "test",
  type: "text",
  released: "2026-01-01",
  context_length: 100_000,
  max_output_tokens: 1_000,
  features: ["tools", "json"],
  pricing: { input: "1", output: "4" },
  upstreams,
});
const openai = { upstream: "openai", model: "m", formats: ["chat"] };
const azure = (deployment: string, formats = ["chat"]) => ({ upstream: "azure", model: deployment, formats });
const models = [
  model("test/chat", [azure("gpt-main")]),
  model("test/asynchronous", [azure("gpt-async")]),
  model("test/responses", [azure("gpt-main", ["responses"])]),
  model("test/not-deployed", [azure("nothing"), openai]),
  model("test/both", [azure("gpt-main"), openai]),
  model("test/claude", [{ upstream: "azure-foundry", model: "claude-main" }]),
];

const running = ofFile<Running & { readonly resource: MockAzure }>(
  async (onEnd) => {
    const resource = await startMockAzure();
    onEnd(() => resource.close());
    const application = { tenant_id: mockTenant, client_id: mockApplication, client_secret: mockSecret };
    const service = await startWithProvider(
      {
        NATIVE_FORMATS_ANY_MODEL: "on",
        CATALOG_FILE: catalogWith({}, {}, models),
        AZURE_OPENAI_RESOURCE: "test",
        AZURE_OPENAI_BASE_URL: `${resource.url}/openai/v1`,
        AZURE_OPENAI_CREDENTIALS: JSON.stringify(application),
        AZURE_FOUNDRY_RESOURCE: "test",
        AZURE_FOUNDRY_BASE_URL: `${resource.url}/anthropic`,
        AZURE_FOUNDRY_CREDENTIALS: JSON.stringify(application),
        AZURE_AUTHORITY_HOST: resource.url,
      },
      onEnd,
    );
    onEnd(() => service.provider.close());
    return { ...service, resource };
  },
  ({ provider, resource }) => {
    provider.reset();
    resource.reset();
  },
);

const clients = [chatClient, responsesClient, messagesClient, geminiClient, completionsClient];
const served = ["test/chat", "test/asynchronous", "test/responses", "test/claude"];

describe.each(clients)("$name", (client) => {
  test.each(served)("an answer and a stream of %s say the same, and are charged as they say", async (name) => {
    const customer = await running.service.account("1");
    const access = { baseUrl: running.service.baseUrl, key: customer.key };
    const hi = { model: name, content: "Hello there" };
    const whole = await client.ask(access, { ...hi, stream: false });
    expect(whole).toMatchObject({ text: name === "test/claude" ? "You said: Hello there" : mockText, model: name });
    expect(await client.ask(access, { ...hi, stream: true })).toEqual(whole);
    expect(whole.usage.output).toBeGreaterThan(0);
    const request = { model: name, status: "succeeded", usage: whole.usage, estimated: false };
    expect(await entriesOf(running.service, customer)).toMatchObject([{ request }, { request }]);
  });
});

test("a prompt that Azure blocks is a 400 with the code content_filter, and no other upstream is asked", async () => {
  const customer = await running.service.account("1");
  for (const stream of [false, true]) {
    const asked = customer.openai.chat.completions.create({ ...asking("test/both", "Do the forbidden."), stream });
    const error = await asked.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ code: "content_filter" });
  }
  expect(running.provider.requests).toHaveLength(0);
});

test("a model that is not deployed is served by the next upstream", async () => {
  const customer = await running.service.account("1");
  const answer = await customer.openai.chat.completions.create(asking("test/not-deployed"));
  expect(answer.choices[0]?.message.content).toBe(mockText);
  expect(running.provider.requests).toHaveLength(1);
});
