import { describe, expect, test } from "vitest";
import { charges } from "../support/generation-setup.ts";
import { falError } from "../support/mock-fal.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { replicateError } from "../support/mock-replicate.ts";
import { asking, shipped } from "../support/native-media-prices.ts";
import { expectNothing, mediaServiceOfFile, type ProviderName, posted } from "../support/native-media-setup.ts";
import { type Customer, eventually } from "../support/service.ts";
import { type Refusal, refusal, refusalOf, untilHealthy } from "../support/service-setup.ts";

const running = mediaServiceOfFile();

const flux = "black-forest-labs/flux-1-dev";
const ideogram = "ideogram/ideogram-v3";
const banana = "google/gemini-nano-banana-2.1";
const veo = "google/veo-3.1";
const omni = "google/gemini-omni-1.2-flash";
const music = "elevenlabs/eleven-music";

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

const failed: Refusal = { status: 502, type: "server_error", code: "upstream_error" };
const full: Refusal = { status: 503, type: "server_error", code: "no_capacity" };
const late: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };
const refused = (param: string | null, message: RegExp): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_value",
  param,
  message,
});

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
    refused("aspect_ratio", /must be one of 1:1/),
  ],
  ["has no credit", "replicate", flux, two, [replicateError(402, "r8_secret: insufficient credit")], failed],
  ["does not know the key", "replicate", flux, two, [replicateError(401, "r8_secret")], failed],
  ["is full", "replicate", flux, two, [replicateError(429, "Throttled.", { retry_after: 1 })], full],
  ["is down", "replicate", flux, two, [replicateError(500, "r8_secret")], failed],
  ["fails the prediction", "replicate", flux, two, [failure("r8_secret: index out of range")], failed],
  ["finds it unfit", "replicate", flux, two, [failure("NSFW content detected.")], refused(null, /NSFW/)],
  ["is asked for too much", "replicate", flux, two, [failure("Service busy (E003)")], full],
  ["cancels it itself", "replicate", flux, two, [{ states: ["canceled"], output: null }], failed],
  ["makes nothing", "replicate", flux, two, [{ output: [] }], failed],
  ["makes words", "replicate", flux, two, [{ output: ["0.txt"] }], failed],
  ["names an address of ours", "replicate", flux, two, [{ output: [inner] }], failed],
  [
    "refuses a field",
    "fal",
    ideogram,
    two,
    [falError(422, "less_than_equal", "Too many.", { loc: ["body", "num_images"] })],
    refused("n", /Too many/),
  ],
  [
    "refuses a field of a video",
    "fal",
    veo,
    waves,
    [falError(422, "string_too_long", "Too long.", { loc: ["body", "negative_prompt"] })],
    refused("input.negative_prompt", /Too long/),
  ],
  ["has no credit", "fal", veo, waves, [{ status: 403, body: { detail: "User is locked: balance" } }], failed],
  ["is full", "fal", veo, waves, [{ status: 429, body: { detail: "secret" }, headers: { "retry-after": "1" } }], full],
  [
    "finds it unfit",
    "fal",
    veo,
    waves,
    [{ result: falError(422, "content_policy_violation", "Flagged.", { loc: ["body", "prompt"] }) }],
    refused("input.prompt", /Flagged/),
  ],
  [
    "blackens all of it",
    "fal",
    ideogram,
    two,
    [{ output: { images: [{ url: "0.png" }, { url: "1.png" }], has_nsfw_concepts: [true, true] } }],
    refused("prompt", /safety/),
  ],
  ["loses its runner", "fal", veo, waves, [{ failed: { error: "x", error_type: "runner_disconnected" } }], failed],
  ["takes too long", "fal", veo, waves, [{ failed: { error: "x", error_type: "request_timeout" } }], late],
  ["makes no file", "fal", music, waves, [{ output: { seed: 7 } }], failed],
  [
    "makes a second file that cannot be had",
    "fal",
    veo,
    waves,
    [{ output: { video: { url: "0.mp4" }, thumbnail: { url: inner } } }],
    failed,
  ],
  ["is at odds with the prompt", "gemini", banana, waves, [{ blockReason: "SAFETY" }], refused(null, /SAFETY/)],
  ["draws nothing", "gemini", banana, waves, [{ parts: [], finishReason: "OTHER" }], failed],
  ["is full", "gemini", banana, waves, [mockGeminiError(429, "AIzaSecret", { headers: { "retry-after": "1" } })], full],
  ["does not know the key", "gemini", banana, waves, [mockGeminiError(400, "API key not valid.")], failed],
  [
    "refuses the video",
    "gemini",
    omni,
    waves,
    [mockGeminiError(400, "The prompt is not allowed.")],
    refused(null, /not allowed/),
  ],
  ["fails the video", "gemini", omni, waves, [{ states: ["failed"], outcome: {} }], failed],
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
