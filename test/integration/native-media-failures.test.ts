import { describe, expect, test } from "vitest";
import { charges } from "../support/generation-setup.ts";
import { falError } from "../support/mock-fal.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { replicateError } from "../support/mock-replicate.ts";
import { asking, shipped } from "../support/native-media-prices.ts";
import { expectNothing, mediaServiceOfFile, type ProviderName, posted } from "../support/native-media-setup.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  invalidValue,
  noCapacity,
  type Refusal,
  refusal,
  refusalOf,
  untilHealthy,
  upstreamError,
} from "../support/service-setup.ts";

const running = mediaServiceOfFile();

const flux = "black-forest-labs/flux-1-dev";
const ideogram = "ideogram/ideogram-v3";
const banana = "google/gemini-nano-banana-2.1";
const veo = "google/veo-3.1";
const omni = "google/gemini-omni-1.2-flash";

const respond = (name: ProviderName, answers: readonly object[]) => {
  const provider: { respond(...answers: ProviderAnswer[]): void } = running[name];
  provider.respond(...answers);
};

/** Succeeds once, so that later tests find neither the provider nor its model in a cooldown. */
async function succeeds(name: ProviderName, id: string): Promise<void> {
  running[name].reset();
  const customer = await running.service.account("20");
  const { path, body } = asking(shipped(id), { prompt: "a fox" });
  await untilHealthy(running, () => customer.post(path, body));
}

const late: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };

const two = { prompt: "a fox", n: 2 };
const waves = { prompt: "waves" };
const notTaken = [{ type: "enum", field: "input.aspect_ratio", description: "must be one of 1:1" }];
const failure = (error: string) => ({ states: ["starting", "failed"], error, output: null });
const inner = "http://127.0.0.1:9/secret.png";

type Row = readonly [
  what: string,
  name: ProviderName,
  model: string,
  fields: object,
  answers: object[],
  refused: Refusal,
];
const rows: readonly Row[] = [
  [
    "refuses a field",
    "replicate",
    flux,
    two,
    [replicateError(422, "- input.aspect_ratio: no", { invalid_fields: notTaken })],
    invalidValue("aspect_ratio", /must be one of 1:1/),
  ],
  ["does not know the key", "replicate", flux, two, [replicateError(401, "r8_secret")], upstreamError],
  ["is full", "replicate", flux, two, [replicateError(429, "Throttled.", { retry_after: 1 })], noCapacity],
  ["fails the prediction", "replicate", flux, two, [failure("r8_secret: index out of range")], upstreamError],
  ["finds it unfit", "replicate", flux, two, [failure("NSFW content detected.")], invalidValue(null, /NSFW/)],
  ["makes nothing", "replicate", flux, two, [{ output: [] }], upstreamError],
  [
    "refuses a field of a video",
    "fal",
    veo,
    waves,
    [falError(422, "string_too_long", "Too long.", { loc: ["body", "negative_prompt"] })],
    invalidValue("input.negative_prompt", /Too long/),
  ],
  [
    "blackens all of it",
    "fal",
    ideogram,
    two,
    [{ output: { images: [{ url: "0.png" }, { url: "1.png" }], has_nsfw_concepts: [true, true] } }],
    invalidValue("prompt", /safety/),
  ],
  ["takes too long", "fal", veo, waves, [{ failed: { error: "x", error_type: "request_timeout" } }], late],
  [
    "makes a second file that cannot be had",
    "fal",
    veo,
    waves,
    [{ output: { video: { url: "0.mp4" }, thumbnail: { url: inner } } }],
    upstreamError,
  ],
  ["is at odds with the prompt", "gemini", banana, waves, [{ blockReason: "SAFETY" }], invalidValue(null, /SAFETY/)],
  ["draws nothing", "gemini", banana, waves, [{ parts: [], finishReason: "OTHER" }], upstreamError],
  ["fails the video", "gemini", omni, waves, [{ states: ["failed"], outcome: {} }], upstreamError],
];

test.each(rows)("the provider %s (%s, %s): the error says so; no charge, no hold, no file", async (...row) => {
  const [, name, id, fields, answers, refused] = row;
  const customer = await running.service.account("20");
  const { path, body } = asking(shipped(id), fields);
  respond(name, answers);
  const response = await customer.post(path, body);
  const text = await response.clone().text();
  expect(text).not.toMatch(/secret|AIza|r8_|operator/i);
  expect(await refusalOf(response)).toEqual(refusal(refused));
  // Each job is submitted once, whatever its outcome.
  expect(posted(running[name]).filter(({ path }) => !path.endsWith("/cancel"))).toHaveLength(1);
  await expectNothing(running, customer, "20.00");
  await succeeds(name, id);
});

describe("a caller who disconnects", () => {
  const cancellation: Readonly<Record<"replicate" | "fal", string>> = {
    replicate: "POST /v1/predictions/rrr4z55ocneqzikepnug6xezpe/cancel",
    fal: "PUT /fal-ai/veo3.1/requests/764cabcf-b745-4b3e-ae38-1200304cf45b/cancel",
  };
  const seen = (name: ProviderName) => running[name].requests.map(({ method, path }) => `${method} ${path}`);
  const usageOf = async (customer: Customer) =>
    (await customer.ledger("usage")) as unknown as readonly { request: { status: string } }[];

  test.each([
    ["replicate", flux, { states: ["starting"] }],
    ["fal", veo, { states: ["IN_QUEUE"] }],
  ] as const)(
    "while a job of %s waits: it is cancelled there, nothing is billed or charged",
    async (name, id, answer) => {
      const customer = await running.service.account("20");
      const { path, body } = asking(shipped(id), waves);
      respond(name, [answer]);
      const leaving = new AbortController();
      const calling = customer.post(path, body, { signal: leaving.signal });
      await eventually(() => running[name].requests.some(({ method }) => method === "GET"));
      leaving.abort();
      await expect(calling).rejects.toThrow("abort");
      await eventually(() => seen(name).includes(cancellation[name]));
      await expectNothing(running, customer, "20.00");
      expect(running[name].billed()).toBe(0);
      expect((await usageOf(customer)).map(({ request }) => request.status)).toEqual(["cancelled"]);
      expect(seen(name).filter((each) => /^(POST|PUT|DELETE)/.test(each))).toHaveLength(2);
      await succeeds(name, id);
    },
  );

  test.each([
    ["replicate", flux, { states: ["processing", "processing", "succeeded"] }],
    ["fal", veo, { states: ["IN_PROGRESS", "COMPLETED"], output: { video: { url: "0.mp4" } } }],
    ["gemini", omni, { states: ["in_progress", "completed"] }],
    ["gemini", banana, {}],
  ] as const)("while %s works: it is billed, so it goes on and is charged as delivered", async (name, id, answer) => {
    const customer = await running.service.account("20");
    const { path, body } = asking(shipped(id), waves);
    const gate = Promise.withResolvers<void>();
    // A job is polled, while an immediate result is part of the response.
    const held = { beforeHeaders: gate.promise };
    respond(name, id === banana ? [held] : [answer, held]);
    const leaving = new AbortController();
    const calling = customer.post(path, body, { signal: leaving.signal });
    await running[name].request(id === banana ? 0 : 1);
    leaving.abort();
    await expect(calling).rejects.toThrow("abort");
    gate.resolve();
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
    expect((await usageOf(customer)).map(({ request }) => request.status)).toEqual(["succeeded"]);
    expect(name === "gemini" || running[name].billed() === 1).toBe(true);
    expect(seen(name).filter((each) => /cancel|^DELETE/.test(each))).toEqual([]);
    await succeeds(name, id);
  });
});

describe("the same request with the same key", () => {
  test.each([
    ["replicate", flux, {}],
    ["fal", veo, { output: { video: { url: "0.mp4" } } }],
    ["gemini", omni, {}],
  ] as const)("at the same time and later: one job at %s, one charge, one answer", async (name, id, answer) => {
    const customer = await running.service.account("20");
    const { path, body } = asking(shipped(id), waves);
    const init = { headers: { "idempotency-key": "once" } };
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    respond(name, [{ ...answer, beforeHeaders: opened }]);
    const ask = async (signal?: AbortSignal) => {
      const response = await customer.post(path, body, { ...init, ...(signal && { signal }) });
      const { status, headers } = response;
      return { status, replayed: headers.get("idempotent-replayed"), text: await response.text() };
    };
    const leaving = new AbortController();
    const disconnected = ask(leaving.signal);
    await running[name].request(0);
    const joined = ask();
    const other = await customer.post(path, asking(shipped(id), { prompt: "other" }).body, init);
    expect(other.status).toBe(409);
    leaving.abort();
    await expect(disconnected).rejects.toThrow("abort");
    open();
    const first = await joined;
    expect([first.status, first.text]).toEqual([200, expect.stringContaining("/media/file_")]);
    expect(await ask()).toEqual({ ...first, replayed: "true" });
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
    expect(await running.filesOf(customer)).toBe(1);
    const submitted = running[name].requests.filter(({ method }) => /POST|PUT|DELETE/.test(method));
    expect(submitted).toHaveLength(1);
  });
});
