import { expect, test } from "vitest";
import { clientOf as anthropicOf, asking as askingClaude, textOf } from "../support/anthropic-client-setup.ts";
import { asking as askingGemini, clientOf as geminiOf } from "../support/gemini-client-setup.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { type MockVertex, startMockVertex } from "../support/mock-vertex.ts";
import { mockAccount, mockProject } from "../support/mock-vertex-tokens.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { catalogWith, entriesOf, type Running, startWithProvider } from "../support/service-setup.ts";

const geminiModel = "google/gemini-3.8-flash";
const claudeModel = "anthropic/claude-sonnet-4-6";
const prices = { input: "1", cached_input: "0.5", output: "2" };
const cachePrices = { ...prices, cache_write: "1.25", cache_write_1h: "2" };

/** A service whose only credential is the key of Google's service account. */
const served: Running & { readonly vertex: MockVertex } = ofFile(
  async (onEnd) => {
    const { clock } = movableClock();
    const vertex = await startMockVertex({ now: () => clock.now() });
    const env = {
      VERTEX_CREDENTIALS: mockAccount,
      VERTEX_PROJECT: mockProject,
      VERTEX_BASE_URL: vertex.url,
      GOOGLE_OAUTH_TOKEN_URL: `${vertex.tokens.url}/token`,
      CATALOG_FILE: catalogWith(
        {},
        { [geminiModel]: { pricing: { ...prices, audio_input: "1" } }, [claudeModel]: { pricing: cachePrices } },
      ),
    };
    const running = await startWithProvider(env, onEnd, clock);
    onEnd(() => Promise.all([running.provider.close(), vertex.close()]));
    return { ...running, vertex };
  },
  ({ vertex }) => vertex.reset(),
);

const place = (location: string) => `/v1/projects/${mockProject}/locations/${location}/publishers`;
const paths = () => served.vertex.requests.map(({ path }) => path);

test("Google's client: whole answers, streams and counts of Gemini, at the price of the tokens", async () => {
  const customer = await served.service.account("10");
  const client = geminiOf(served.service, customer);
  const usage = {
    promptTokenCount: 100,
    cachedContentTokenCount: 60,
    thoughtsTokenCount: 20,
    candidatesTokenCount: 30,
  };
  served.vertex.respond({ text: "Good day", usage }, { text: "Good day", usage });
  const answer = await client.models.generateContent(askingGemini(geminiModel));
  expect([answer.text, answer.usageMetadata?.thoughtsTokenCount]).toEqual(["Good day", 20]);
  const events = await Array.fromAsync(await client.models.generateContentStream(askingGemini(geminiModel)));
  expect(events.map(({ text }) => text).join("")).toBe("Good day");
  expect(events.at(-1)?.candidates?.[0]?.finishReason).toBe("STOP");
  expect(await client.models.countTokens(askingGemini(geminiModel))).toMatchObject({ totalTokens: 2 });
  const name = `${place("global")}/google/models/gemini-3.8-flash`;
  expect(paths()).toEqual([`${name}:generateContent`, `${name}:streamGenerateContent?alt=sse`, `${name}:countTokens`]);
  // 40 tokens at 1, 60 from the cache at 0.5, 50 of output at 2 dollars a million.
  const costs = (await entriesOf(served.service, customer)).map(({ amount_usd }) => amount_usd);
  expect(costs).toEqual(["-0.00017", "-0.00017"]);
});

test("Anthropic's client: whole answers, streams and counts of Claude, at the price of the tokens", async () => {
  const customer = await served.service.account("10");
  const client = anthropicOf(served.service, customer);
  const usage = { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 50 };
  served.vertex.respond({ text: "Good day", usage }, { text: "Good day", usage });
  const message = await client.messages.create(askingClaude(claudeModel));
  expect([textOf(message), message.usage]).toMatchObject(["Good day", usage]);
  const streamed = await client.beta.messages
    .stream({ ...askingClaude(claudeModel), betas: ["interleaved-thinking-2025-05-14", "claude-code-20250219"] })
    .finalMessage();
  expect(textOf(streamed)).toBe("Good day");
  expect(await client.messages.countTokens(askingClaude(claudeModel))).toEqual({ input_tokens: 2 });
  const models = `${place("global")}/anthropic/models`;
  expect(paths()).toEqual([
    `${models}/claude-sonnet-4-6:rawPredict`,
    `${models}/claude-sonnet-4-6:streamRawPredict`,
    `${models}/count-tokens:rawPredict`,
  ]);
  expect(served.vertex.requests[1]?.headers["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14");
  const costs = (await entriesOf(served.service, customer)).map(({ amount_usd }) => amount_usd);
  expect(costs).toEqual(["-0.00017", "-0.00017"]);
});

test("an exhausted location is followed at once by the other, and a caller may name the one", async () => {
  const customer = await served.service.account("10");
  const body = { contents: [{ parts: [{ text: "Hello there" }] }] };
  const ask = (provider?: object) =>
    customer.post(`/v1beta/models/${geminiModel}:generateContent`, { ...body, ...(provider && { provider }) });
  served.vertex.respond(mockGeminiError(429, "Resource exhausted. Please try again later."));
  expect((await ask()).status).toBe(200);
  expect((await ask({ data_residency: "eu" })).status).toBe(200);
  expect((await ask({ regions: ["eu"] })).status).toBe(200);
  const name = "google/models/gemini-3.8-flash:generateContent";
  expect(paths()).toEqual(["global", "eu", "eu", "eu"].map((location) => `${place(location)}/${name}`));
});
