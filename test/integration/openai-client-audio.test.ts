import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { charges } from "../support/generation-setup.ts";
import { mediaCatalog, speech } from "../support/media-endpoints.ts";
import { mockMp3 } from "../support/mock-openai-media.ts";
import { storesOfRun } from "../support/servers.ts";
import type { Customer } from "../support/service.ts";
import {
  entryOf,
  expectUntouched,
  nanoUsd,
  refusalOf,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";

const localSpeech = "local/speech";
const providerSpeech = "openai/tts-1";

const running = serviceOfFile({ CATALOG_FILE: mediaCatalog() });

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

test("under an Idempotency-Key the whole audio comes at once, with its length and cost, and then again", async () => {
  const customer = await running.service.account("1");
  const key = { "idempotency-key": "once" };
  const first = await spoken(customer, saying, key);
  expect(await spoken(customer, saying, key)).toEqual({ ...first, paidNanoUsd: 0n, replayed: "true" });
});

/** Storage that accepts writes, and fails to read a generated file. */
async function unreadableStorage(): Promise<string> {
  const { S3_ENDPOINT } = await storesOfRun();
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
