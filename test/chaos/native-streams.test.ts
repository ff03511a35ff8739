import { expect, onTestFinished, test } from "vitest";
import { formatUsd } from "#money";
import { availableUsd, never, onlyCall, startProcesses } from "../support/chaos-setup.ts";
import { startMockAnthropic } from "../support/mock-anthropic.ts";
import { startMockGemini } from "../support/mock-gemini.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import type { MockProvider } from "../support/mock-provider.ts";
import { type Face, send, streamFaces } from "../support/native-formats.ts";
import { costOf, priceListOf } from "../support/native-media-prices.ts";
import { eventsOf, expectFailed, readAlong, saidIn } from "../support/native-stream-events.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";
import type { Refusal } from "../support/service-setup.ts";

const full: Refusal = { status: 503, type: "server_error", code: "no_capacity" };
const question = "Hello there";
const said = "abcd efgh";
/** Nine bytes. */
const saidTokens = 3;

/**
 * A model for each format, with the question's possible token counts: the provider's at the beginning of a stream, or
 * the counted ones, or the estimate if the counting thread gets no processor time.
 */
const spoken = {
  messages: { model: "anthropic/claude-sonnet-5", inputTokens: [2] },
  responses: { model: "openai/gpt-4.1-mini", inputTokens: [9, 10] },
  gemini: { model: "google/gemini-3.6-flash", inputTokens: [2] },
} as const;
const natives = streamFaces.flatMap((face) => (face.format === "chat" ? [] : [{ face, ...spoken[face.format] }]));

async function startNatives() {
  const stores = await testStores();
  const [anthropic, openai, gemini] = await Promise.all([startMockAnthropic(), startMockOpenai(), startMockGemini()]);
  const providers: readonly MockProvider[] = [anthropic, openai, gemini] as never;
  onTestFinished(async () => {
    for (const provider of providers) await provider.close();
  });
  const env = {
    ANTHROPIC_BASE_URL: anthropic.url,
    ANTHROPIC_API_KEY: "anthropic-operator",
    OPENAI_BASE_URL: openai.url,
    OPENAI_API_KEY: "sk-operator",
    GEMINI_BASE_URL: gemini.url,
    GEMINI_API_KEY: "gemini-operator",
    ...shortTimeouts,
  };
  const text = `${said} never sent`;
  // Everything before the third word has been sent.
  anthropic.always({ content: [{ type: "text", text }], beforeEvent: { 5: never } });
  openai.always({ text, beforeEvent: { 6: never } });
  gemini.always({ text, beforeEvent: { 2: never } });
  const requests = () => providers.flatMap((provider) => provider.requests);
  return { stores, env, requests, ...(await startProcesses(stores, env)) };
}

/** A stream of each format after its first two words. */
const begin = (client: Client) =>
  Promise.all(
    natives.map(async (native) => {
      const customer = await client.account("1.00");
      const leaving = new AbortController();
      const asked = native.face.stream(native.model, question);
      const response = await send(customer, asked, { signal: leaving.signal });
      expect([native.face.name, response.status]).toEqual([native.face.name, 200]);
      const { text, whole } = readAlong(response);
      const broken = whole.then(
        () => false,
        () => true,
      );
      await eventually(() => text().includes("efgh"));
      return { ...native, customer, response, text, whole, broken, leave: () => leaving.abort() };
    }),
  );

/** Every provider request is aborted, and the charge covers exactly the delivered text. */
async function expectDelivered(client: Client, streams: Awaited<ReturnType<typeof begin>>) {
  for (const { customer, model, inputTokens, face, text } of streams) {
    expect(text()).not.toContain("never");
    const { amount_usd, request } = await onlyCall(client, customer);
    const { input } = request.usage;
    expect(inputTokens).toContain(input);
    const usage = { input: Number(input), output: saidTokens };
    expect([face.name, request]).toMatchObject([
      face.name,
      { status: "cancelled", attempts: { length: 1 }, estimated: true, usage, shortfall_usd: "0.00" },
    ]);
    const cost = costOf(priceListOf(model), { input: usage.input / 1e6, output: usage.output / 1e6 });
    expect(amount_usd).toBe(`-${formatUsd(cost)}`);
    expect(await availableUsd(client, customer)).toBe(formatUsd(1_000_000_000n - cost));
  }
}

/** No process can send the whole response, so of the format's two last events only the one with the reason follows. */
function expectInterrupted(face: Face, events: ReturnType<typeof eventsOf>, requestId: string | null) {
  if (face.format !== "responses") return expectFailed(face, events, full, requestId);
  expect(events.at(-1)).toMatchObject({ type: "error", code: "no_capacity", param: null });
}

test("a worker killed under native streams: each ends with its format's own error, and nothing is charged", async () => {
  const { client, worker, requests, stores, env } = await startNatives();
  const streams = await begin(client);

  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);
  const texts = await Promise.all(streams.map(({ whole }) => whole));
  for (const [at, { face, customer, response }] of streams.entries()) {
    const events = eventsOf(face, texts[at] ?? "");
    expectInterrupted(face, events, response.headers.get("x-request-id"));
    expect(texts[at]).not.toMatch(/message_stop|response\.completed|"finishReason"/);
    expect(saidIn(face, events)).toBe(said);
    const { amount_usd, request } = await onlyCall(client, customer);
    expect([face.name, amount_usd, request]).toMatchObject([
      face.name,
      "0.00",
      { status: "failed", error: "no_capacity" },
    ]);
    expect(await availableUsd(client, customer)).toBe("1.00");
  }
  expect(requests()).toHaveLength(natives.length);
});

test("an API killed under native streams: the providers are aborted, and the delivered part is charged", async () => {
  const { api: doomed, requests, stores, env } = await startNatives();
  const streams = await begin(doomed.client);
  doomed.kill("SIGKILL");
  await doomed.exited;
  expect(await Promise.all(streams.map(({ broken }) => broken))).toEqual(natives.map(() => true));
  await Promise.all(requests().map(({ closed }) => closed));
  expect(requests().map(({ aborted }) => aborted)).toEqual(natives.map(() => true));
  const { client } = await spawnApi(stores, env);
  await expectDelivered(client, streams);
});

test("callers who disconnect from native streams: the providers are aborted, and the delivered part is charged", async () => {
  const { client, requests } = await startNatives();
  const streams = await begin(client);
  for (const { leave } of streams) leave();
  expect(await Promise.all(streams.map(({ broken }) => broken))).toEqual(natives.map(() => true));
  await Promise.all(requests().map(({ closed }) => closed));
  expect(requests().map(({ aborted }) => aborted)).toEqual(natives.map(() => true));
  await expectDelivered(client, streams);
});
