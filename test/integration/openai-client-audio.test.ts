import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type OpenAI from "openai";
import { expect, inject, onTestFinished, test } from "vitest";
import { charges } from "../support/generation-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockMp3 } from "../support/mock-openai-media.ts";
import type { Customer } from "../support/service.ts";
import {
  catalogWith,
  entryOf,
  expectUntouched,
  nanoUsd,
  refusal,
  refusalOf,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";

const localSpeech = "local/speech";
const providerSpeech = "openai/tts-1";
const speech = "/v1/audio/speech";

const running = serviceOfFile({
  CATALOG_FILE: catalogWith(
    {},
    {
      [localSpeech]: { pricing: { character: "0.000005" }, elite_discount_bps: 1_500 },
      [providerSpeech]: { pricing: { character: "0.000015" } },
    },
  ),
});

const saying = { model: localSpeech, input: "Good day 👋👋!", voice: "alloy" } as const;

/**
 * The audio of `client.audio.speech.create`, and its cost, which ledger, balance and the header of a non-streamed
 * response agree on.
 */
async function spoken({ openai, ...customer }: Customer, body: OpenAI.Audio.SpeechCreateParams, headers = {}) {
  const before = nanoUsd(await customer.available());
  const response = await openai.audio.speech.create(body, { headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  await running.service.settled();
  const entry = await entryOf(running.service, response.headers.get("x-request-id"));
  const costNanoUsd = -nanoUsd(entry.amount_usd);
  const isWhole = "idempotency-key" in headers;
  expect(response.headers.get("content-length")).toBe(isWhole ? String(bytes.length) : null);
  const shownCost = response.headers.get("x-xm-cost-usd");
  expect(shownCost && nanoUsd(shownCost)).toBe(isWhole ? costNanoUsd : null);
  expect(entry.request).toMatchObject({ endpoint: speech, model: body.model, status: "succeeded" });
  return {
    bytes,
    type: response.headers.get("content-type"),
    costNanoUsd,
    paidNanoUsd: before - nanoUsd(await customer.available()),
    replayed: response.headers.get("idempotent-replayed"),
  };
}

test.each([
  [undefined, "audio/wav", "RIFF"],
  ["wav", "audio/wav", "RIFF"],
  ["mp3", "audio/mpeg", "\xff\xf3"],
  ["pcm", "audio/pcm", "\0\0"],
] as const)("the local model speaks, as %s: its type, and its price for each character", async (format, type, head) => {
  const customer = await running.service.account("1", { tier: "elite" });
  const made = await spoken(customer, { ...saying, ...(format && { response_format: format }) });
  expect(made).toMatchObject({ type, costNanoUsd: 12n * 4_250n, paidNanoUsd: 12n * 4_250n });
  expect(made.bytes.toString("latin1", 0, head.length)).toBe(head);
  expect(await charges(customer)).toHaveLength(1);
});

test("the local model accepts the same fields as OpenAI's models: speed makes a tape faster, instructions change nothing", async () => {
  const customer = await running.service.account("1");
  const usual = await spoken(customer, { ...saying, input: "x".repeat(90) });
  const fast = { ...saying, input: "x".repeat(90), speed: 2, instructions: "Speak softly." };
  const made = await spoken(customer, fast);
  expect(made.costNanoUsd).toBe(usual.costNanoUsd);
  expect((made.bytes.length - 44) * 2).toBe(usual.bytes.length - 44);
});

test("a provider gets its own names, and its audio comes unchanged", async () => {
  const customer = await running.service.account("1");
  const body = { model: providerSpeech, input: "Hello", voice: "coral", speed: 1.5 } as const;
  const made = await spoken(customer, { ...body, response_format: "mp3", stream_format: "audio" });
  expect(made).toMatchObject({ bytes: mockMp3, type: "audio/mpeg", costNanoUsd: 75_000n, paidNanoUsd: 75_000n });
  expect(running.provider.requests.map(({ path, body: sent }) => [path, sent])).toEqual([
    [speech, { ...body, model: "tts-1", response_format: "mp3" }],
  ]);
});

test("under an Idempotency-Key the same audio comes again, and is charged once", async () => {
  const customer = await running.service.account("1");
  const key = { "idempotency-key": "once" };
  const first = await spoken(customer, saying, key);
  const again = await spoken(customer, saying, key);
  expect(again).toEqual({ ...first, paidNanoUsd: 0n, replayed: "true" });
  const other = await customer.post(speech, { ...saying, voice: "bass" }, { headers: key });
  expect(await refusalOf(other)).toMatchObject({ status: 409, error: { code: "conflict" } });
});

const invalid = (param: string, message = /./, code = "invalid_value") =>
  refusal({ status: 400, type: "invalid_request_error", code, param, message });

test("parameters that are nested too deep are 400", async () => {
  const customer = await running.service.account("1");
  const body = `{"model":"local/speech","input":"x","more":${"[".repeat(100)}${"]".repeat(100)}}`;
  expect(await refusalOf(await customer.post(speech, body))).toEqual(invalid(`more${"[0]".repeat(63)}`));
});

test.each<readonly [what: string, fields: object, expected: ReturnType<typeof refusal>]>([
  ["no input", { input: undefined }, invalid("input")],
  ["an empty input", { input: "" }, invalid("input")],
  ["an input that is too long", { input: "x".repeat(4_097) }, invalid("input", /^input: .*4096/)],
  ["a voice that the model does not have", { voice: "nobody" }, invalid("voice", /alto/)],
  ["a format that the model does not make", { response_format: "opus" }, invalid("response_format", /wav/)],
  ["a parameter that the model does not have", { pitch: 2 }, invalid("pitch", /"pitch"/)],
  ["another kind of stream", { stream_format: "text" }, invalid("stream_format")],
  ["a chat model", { model: "local/chat" }, invalid("model", /\/v1\/chat\/completions/, "model_not_supported")],
  ["a video model", { model: "local/video" }, invalid("model", /\/v1\/media\/generations/, "model_not_supported")],
])("%s: 400 naming the field, and no charge", async (_, fields, expected) => {
  const customer = await running.service.account("1");
  expect(await refusalOf(await customer.post(speech, { ...saying, ...fields }))).toEqual(expected);
  await expectUntouched(running.service, customer, "1.00");
  expect(await customer.ledger("usage")).toEqual([]);
});

test("a provider that refuses or fails: its field in the caller's words, and no charge", async () => {
  const customer = await running.service.account("1");
  const body = { model: providerSpeech, input: "Hello", voice: "alloy" };
  running.provider.respond(mockError(400, "That text is not spoken here.", { param: "input" }));
  expect(await refusalOf(await customer.post(speech, body))).toEqual(invalid("input", /not spoken/));
  running.provider.respond(mockError(500, "Oops"));
  expect(await refusalOf(await customer.post(speech, body))).toMatchObject({ error: { param: null } });
  await expectUntouched(running.service, customer, "1.00");
  expect(await charges(customer)).toEqual([]);
});

/** Storage that accepts writes, and fails to read a generated file. */
async function unreadableStorage(): Promise<string> {
  const { S3_ENDPOINT } = inject("stores");
  const server = createServer((req, res) => {
    const { method, headers, url } = req;
    if (method === "GET" && url?.includes("/files/")) return void res.writeHead(403).end();
    const forwarded = request(new URL(url ?? "/", S3_ENDPOINT), { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    req.pipe(forwarded);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("stored audio that cannot be read now: 503, and the charge is valid for the next request with the key", async () => {
  const { service, provider } = await startWithProvider({ S3_ENDPOINT: await unreadableStorage() });
  onTestFinished(() => provider.close());
  const customer = await service.account("1");
  const stored = { headers: { "idempotency-key": "unreadable" } };
  expect(await refusalOf(await customer.post(speech, saying, stored))).toMatchObject({
    status: 503,
    error: { code: "no_capacity" },
  });
  await expectUntouched(service, customer, "0.99994");
});
