import { expect, test } from "vitest";
import { mockError } from "../support/mock-openai.ts";
import { mockMp3 } from "../support/mock-openai-media.ts";
import { type Customer, eventually } from "../support/service.ts";
import { catalogWith, entriesOf, expectUntouched, gate, nanoUsd, serviceOfFile } from "../support/service-setup.ts";

const speech = "/v1/audio/speech";
const model = "openai/tts-1";
const upstreams = ["openai", "groq"].map((upstream) => ({ upstream, model: "tts-1" }));
const atStandIn = { base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" };

const running = serviceOfFile({
  CATALOG_FILE: catalogWith({ groq: atStandIn }, { [model]: { upstreams, pricing: { character: "0.000015" } } }),
});

const saying = { model, input: "Good day!", voice: "alloy" } as const;
/** Nine characters. */
const costNanoUsd = 9n * 15_000n;
const audio = { headers: { "content-type": "audio/mpeg" }, done: false } as const;
const halves = [mockMp3.subarray(0, mockMp3.length >> 1), mockMp3.subarray(mockMp3.length >> 1)];

/** The customer's only call: its cost, by the ledger and the balance, and its status. */
async function charged(customer: Customer) {
  const [entry, ...others] = await entriesOf(running.service, customer);
  expect(others).toEqual([]);
  const cost = -nanoUsd(entry?.amount_usd ?? "");
  expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe(cost);
  const { status, error, usage, estimated, attempts } = entry?.request ?? {};
  return { cost, status, error, character: usage?.["character"], estimated, attempts: attempts?.length };
}
const succeeded = {
  cost: costNanoUsd,
  status: "succeeded",
  error: undefined,
  character: 9,
  estimated: false,
  attempts: 1,
};

async function readPiece(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Buffer> {
  const { value } = await reader.read();
  return Buffer.from(value ?? []);
}

test("the first bytes arrive while the provider still generates, and the whole is unchanged", async () => {
  const customer = await running.service.account("1");
  const rest = gate();
  running.provider.respond({ ...audio, events: halves, beforeEvent: { 1: rest.opened } });
  const response = await customer.post(speech, saying);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("audio/mpeg");
  expect(response.headers.get("content-length")).toBeNull();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const first = await readPiece(reader);
  expect(first.length).toBeGreaterThan(0);
  rest.open();
  const pieces = [first];
  for (let piece = await readPiece(reader); piece.length > 0; piece = await readPiece(reader)) pieces.push(piece);
  expect(Buffer.concat(pieces)).toEqual(mockMp3);
  expect(await charged(customer)).toEqual(succeeded);
});

test("pieces of any size, and of any number, are the same bytes", async () => {
  const customer = await running.service.account("1");
  const large = Buffer.from(Array.from({ length: 700_001 }, (_, at) => (at * 7 + (at >> 8)) & 255));
  const events = [large.subarray(0, 1), large.subarray(1, 3), large.subarray(3, 500_000), large.subarray(500_000)];
  running.provider.respond({ ...audio, events });
  const response = await customer.post(speech, saying);
  expect(Buffer.from(await response.arrayBuffer()).equals(large)).toBe(true);
});

test("as events: the audio in base64 while it is generated, then the usage", async () => {
  const customer = await running.service.account("1");
  const rest = gate();
  running.provider.respond({ ...audio, events: halves, beforeEvent: { 1: rest.opened } });
  const response = await customer.openai.audio.speech.create({ ...saying, stream_format: "sse" });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = String(await readPiece(reader));
  expect(text).toMatch(/^data: \{"type":"speech\.audio\.delta","audio":"/);
  rest.open();
  for (let piece = await readPiece(reader); piece.length > 0; piece = await readPiece(reader)) text += String(piece);
  const events = text
    .split("\n\n")
    .filter(Boolean)
    .map((event) => JSON.parse(event.replace(/^data: /, "")) as { type: string; audio?: string });
  const pieces = events.flatMap(({ audio: piece }) => (piece === undefined ? [] : [Buffer.from(piece, "base64")]));
  expect(Buffer.concat(pieces)).toEqual(mockMp3);
  expect(events.at(-1)).toEqual({
    type: "speech.audio.done",
    usage: { input_tokens: 3, output_tokens: 0, total_tokens: 3 },
  });
  expect(await charged(customer)).toEqual(succeeded);
});

const brokenOff = { ...succeeded, status: "failed", error: "upstream_error", estimated: true };

test("audio that breaks off is cut, not ended, and charged as delivered; no other upstream is asked", async () => {
  const customer = await running.service.account("1");
  running.provider.respond({ ...audio, events: halves, cutAfter: 1 });
  const response = await customer.post(speech, saying);
  expect(response.status).toBe(200);
  await expect(response.arrayBuffer()).rejects.toThrow("terminated");
  expect(await charged(customer)).toEqual(brokenOff);
  expect(running.provider.requests).toHaveLength(1);
});

test("events that break off end with an error", async () => {
  const customer = await running.service.account("1");
  running.provider.respond({ ...audio, events: halves, cutAfter: 1 });
  const text = await (await customer.post(speech, { ...saying, stream_format: "sse" })).text();
  expect(text).toContain("speech.audio.delta");
  expect(text).not.toContain("speech.audio.done");
  expect(text).toMatch(/data: \{"error":\{[^}]*"code":"upstream_error"/);
  expect(await charged(customer)).toEqual(brokenOff);
});

test("a failure before the first byte moves on to the next upstream; if all fail it costs nothing", async () => {
  const customer = await running.service.account("1");
  running.provider.respond(mockError(500, "Oops"));
  const response = await customer.post(speech, saying);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(mockMp3);
  expect(await charged(customer)).toEqual({ ...succeeded, attempts: 2 });

  const other = await running.service.account("1");
  running.provider.respond(mockError(500, "Oops"), { ...audio, events: halves, cutAfter: 0 });
  const failed = await other.post(speech, saying);
  expect([failed.status, await failed.json()]).toMatchObject([502, { error: { code: "upstream_error" } }]);
  await expectUntouched(running.service, other, "1.00");
});

test("a caller who disconnects in the middle pays for what the provider did", async () => {
  const customer = await running.service.account("1");
  const [rest, caller] = [gate(), new AbortController()];
  running.provider.respond({ ...audio, events: halves, beforeEvent: { 1: rest.opened } });
  const response = await customer.post(speech, saying, { signal: caller.signal });
  await readPiece((response.body as ReadableStream<Uint8Array>).getReader());
  caller.abort();
  rest.open();
  await eventually(async () => (await entriesOf(running.service, customer)).length === 1);
  expect(await charged(customer)).toMatchObject({ cost: costNanoUsd, character: 9 });
});

test("the longest text that the local model speaks arrives whole", async () => {
  const customer = await running.service.account("1");
  const response = await customer.post(speech, { model: "local/speech", input: "word ".repeat(800), voice: "alloy" });
  const bytes = Buffer.from(await response.arrayBuffer());
  // The sizes in the header match the file.
  expect([bytes.toString("latin1", 0, 4), bytes.readUInt32LE(40)]).toEqual(["RIFF", bytes.length - 44]);
});

test("`provider` chooses among the upstreams of a speech model; there is no list of models", async () => {
  const customer = await running.service.account("1.00");
  running.provider.respond({ body: mockMp3, ...audio });
  const response = await customer.post(speech, { ...saying, provider: { order: ["groq"] } });
  expect([response.status, Buffer.from(await response.arrayBuffer()).equals(mockMp3)]).toEqual([200, true]);
  const [entry] = await eventually(async () => {
    const entries = await entriesOf(running.service, customer);
    return entries.length > 0 && entries;
  });
  expect(entry?.request?.upstream).toBe("groq");
  for (const [more, param] of [
    [{ provider: { only: ["none"] } }, "provider.only[0]"],
    [{ provider: { zdr: true } }, "provider.zdr"],
    [{ models: [model] }, "models"],
  ] as const) {
    const refused = await customer.post(speech, { ...saying, ...more });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param } }]);
  }
});
