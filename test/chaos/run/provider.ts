import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startMockAnthropic } from "../../support/mock-anthropic.ts";
import { startMockGemini } from "../../support/mock-gemini.ts";
import { wordsOf } from "../../support/mock-model.ts";
import { mockText, startMockOpenai } from "../../support/mock-openai.ts";
import type { MockProvider, MockRequest, ProviderAnswer } from "../../support/mock-provider.ts";
import { type Behavior, type PlannedCall, textModels } from "./plan.ts";
import type { ProviderRun } from "./run-log.ts";

/**
 * Mock providers. The prompt contains the behavior and the call's marker, so they are the same for the same plan, and
 * each mock records the calls it received and their bills.
 */
export const upstreamNames = ["openai-a", "openai-b", "anthropic", "gemini"] as const;
export type UpstreamName = (typeof upstreamNames)[number];

export const promptOf = ({ marker, behavior, at }: Pick<PlannedCall, "marker" | "behavior" | "at">) =>
  `Call ${marker} ${behavior} ${at}`;
const inPrompt = /Call (c\d+) (\w+) (first|all|twice)/;
/** The whole prompt is a single token for the mock providers: a word. */
const embeddedWords = wordsOf("Call c0 ok all").length;

/** Nano-USD per token. */
const prices = { input: 1_000n, output: 2_000n } as const;
const tokens = { input: 9, output: wordsOf(mockText).length } as const;
/** More than any hold covers. */
const hugeFactor = 100_000;
const textBill = BigInt(tokens.input) * prices.input + BigInt(tokens.output) * prices.output;
export const uploadBytes = 64 * 1024;
const hugeText = "x".repeat(400_000);

/** The prices of honest answers, in nano-USD. */
export const bills = {
  text: textBill,
  embeddings: BigInt(embeddedWords) * prices.input,
  image: 40_000_000n,
  video: 400_000_000n,
  upload: 62_500_000n,
  /** The price of a character. */
  speech: 1_000_000n,
} as const;

const honest: ReadonlySet<Behavior> = new Set(["ok", "slow", "drip", "hugeFrame", "doubledDone", "wrongType"]);

function usageFor(name: UpstreamName, factor: number): Readonly<Record<string, number>> {
  const [input, output] = [tokens.input * factor, tokens.output * factor];
  if (name === "anthropic") return { input_tokens: input, output_tokens: output };
  if (name === "gemini")
    return { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output };
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

const drops = [1, 2, 3, 4, 5, 6];

type Script = ProviderAnswer & { text?: string; usage?: Readonly<Record<string, number>> | false; states?: string[] };

function scriptFor(behavior: Behavior, name: UpstreamName, { closed }: MockRequest): Script {
  const usual = { text: mockText, usage: usageFor(name, 1), states: ["in_progress", "completed"] };
  const problem = (status: number) => ({ status, body: { error: { message: "It broke.", type: "server_error" } } });
  switch (behavior) {
    case "ok":
      return usual;
    case "slow":
      return { ...usual, beforeHeaders: wait(600) };
    case "hang":
      return { beforeHeaders: closed };
    case "drip":
      return { ...usual, beforeEvent: Object.fromEntries(drops.map((drop) => [drop, wait(drop * 250)])) };
    case "reset":
      return { cutAfter: -1 };
    case "cut":
      return { ...usual, cutAfter: 4 };
    case "failed":
      return problem(500);
    case "limited":
      return problem(429);
    case "refused":
      return problem(400);
    case "truncated":
      return { body: '{"id":"x","object":"chat.completion","choices":[{"mess' };
    case "errorBody":
      return problem(200);
    case "hugeFrame":
      return { ...usual, text: hugeText };
    case "doubledDone":
      return name.startsWith("openai") ? { ...usual, trailing: "data: [DONE]\n\n" } : usual;
    case "wrongType":
      return { ...usual, headers: { "content-type": "text/html" } };
    case "hugeUsage":
      return { ...usual, usage: usageFor(name, hugeFactor) };
    case "noUsage":
      return { ...usual, usage: false };
  }
}

/** Counting the prompt of a stream that broke off runs nothing, and is free. */
const isCounting = ({ path }: MockRequest) => path.endsWith(":countTokens") || path.endsWith("/count_tokens");

/** The price of an honest answer to the request. */
function billFor({ path, body }: MockRequest): bigint {
  if (path.endsWith("/embeddings")) return bills.embeddings;
  if (path.includes("/images/")) return bills.image;
  if (path.endsWith("/videos")) return bills.video;
  if (path.endsWith("/speech")) return bills.speech * BigInt(String(body["input"]).length);
  return bills.text;
}

function runOf(
  name: UpstreamName,
  request: MockRequest,
  timesAsked: (marker: string) => number,
): { run: ProviderRun; behavior: Behavior } | undefined {
  const [, marker, said, at] = inPrompt.exec(JSON.stringify(request.body)) ?? [];
  if (marker === undefined || request.method !== "POST") return undefined;
  const isOver = (at === "first" && name === "openai-b") || (at === "twice" && timesAsked(marker) >= 2);
  const behavior = isOver ? "ok" : (said as Behavior);
  const bill = billFor(request);
  const billNanoUsd = honest.has(behavior) ? bill : behavior === "hugeUsage" ? bill * BigInt(hugeFactor) : 0n;
  return {
    behavior,
    run: { marker, upstream: name, atMs: Date.now(), behavior, billNanoUsd, mayBillNanoUsd: billNanoUsd || bill },
  };
}

export interface Providers {
  readonly runs: readonly ProviderRun[];
  /** Requests that only count a prompt's tokens. */
  readonly counts: readonly ProviderRun[];
  /** The listening port of each upstream. */
  readonly ports: Readonly<Record<UpstreamName, number>>;
  close(): Promise<void>;
}

export async function startProviders(): Promise<Providers> {
  const runs: ProviderRun[] = [];
  const counts: ProviderRun[] = [];
  const asked = new Map<string, number>();
  const timesAsked = (marker: string) => asked.get(marker) ?? 0;
  const answerAs = (name: UpstreamName) => (request: MockRequest) => {
    const known = runOf(name, request, timesAsked);
    if (known) {
      (isCounting(request) ? counts : runs).push(known.run);
      asked.set(known.run.marker, timesAsked(known.run.marker) + 1);
    }
    return scriptFor(known?.behavior ?? "ok", name, request);
  };
  const unrecorded = { record: false };
  const started = {
    "openai-a": await startMockOpenai(unrecorded),
    "openai-b": await startMockOpenai(unrecorded),
    anthropic: await startMockAnthropic(unrecorded),
    gemini: await startMockGemini(unrecorded),
  };
  const named = Object.entries(started) as [UpstreamName, MockProvider][];
  for (const [name, mock] of named) mock.always(answerAs(name));
  return {
    runs,
    counts,
    ports: Object.fromEntries(named.map(([name, { url }]) => [name, Number(new URL(url).port)])) as Providers["ports"],
    close: async () => {
      for (const [, mock] of named) await mock.close();
    },
  };
}

const usd = (nanoUsd: bigint) => (Number(nanoUsd) / 1_000_000_000).toString();

/** Short deadlines, so that a hanging provider is detected during the run. A video is polled for some seconds. */
const deadlines = { first_byte_timeout_ms: 4_000, silence_timeout_ms: 4_000, total_timeout_ms: 20_000 };
const videoDeadlines = { ...deadlines, first_byte_timeout_ms: 16_000 };

export async function writeCatalog(folder: string, addressOf: (name: UpstreamName) => string): Promise<string> {
  const upstream = (name: UpstreamName) => ({
    provider: name.replace(/-.$/, ""),
    base_url: `${addressOf(name)}${name.startsWith("openai") ? "/v1" : ""}`,
    key_env: "CHAOS_API_KEY",
    ...(name.startsWith("openai") && { formats: ["chat"] }),
    ...deadlines,
  });
  const common = { name: "Chaos", owned_by: "chaos", released: "2026-01-01" };
  const at = (...names: UpstreamName[]) => ({ upstreams: names.map((name) => ({ upstream: name, model: "mock-1" })) });
  const text = (id: string, ...names: UpstreamName[]) => ({
    ...common,
    id,
    type: "text",
    context_length: 200_000,
    max_output_tokens: 1_000,
    pricing: { input: "1.00", output: "2.00" },
    ...at(...names),
  });
  const media = (id: string, type: string, task: string, unit: object, price: object, fields: object) => ({
    ...common,
    id,
    type,
    task,
    input_schema: { type: "object", required: Object.keys(fields).slice(0, 1), properties: fields },
    units: unit,
    pricing: price,
    upstreams: ["openai-a", "openai-b"].map((name) => ({
      upstream: task === "video" ? `${name}-video` : name,
      model: "mock-1",
    })),
  });
  const words = { type: "string", minLength: 1, maxLength: 4_096 };
  const models = [
    text(textModels[0], "openai-a", "openai-b"),
    text(textModels[1], "anthropic"),
    text(textModels[2], "gemini"),
    {
      ...common,
      id: "chaos/embeddings",
      type: "embeddings",
      context_length: 8_192,
      pricing: { input: "1.00" },
      ...at("openai-a", "openai-b"),
    },
    media(
      "chaos/image",
      "image",
      "images",
      { image: { field: "n" } },
      { image: usd(bills.image) },
      {
        prompt: words,
        n: { type: "integer", minimum: 1, maximum: 4, default: 1 },
      },
    ),
    media(
      "chaos/video",
      "video",
      "video",
      { second: { field: "duration" } },
      { second: usd(bills.video / 4n) },
      {
        prompt: words,
        duration: { type: "integer", minimum: 1, maximum: 8, default: 4 },
      },
    ),
    media(
      "chaos/speech",
      "audio",
      "speech",
      { character: { characters_of: "text" } },
      { character: usd(bills.speech) },
      {
        text: words,
        voice: { enum: ["alto", "tenor"] },
      },
    ),
  ];
  const upstreams = Object.fromEntries([
    ...upstreamNames.map((name) => [name, upstream(name)]),
    ...(["openai-a", "openai-b"] as const).map((name) => [`${name}-video`, { ...upstream(name), ...videoDeadlines }]),
  ]);
  const file = join(folder, "catalog.json");
  await writeFile(file, JSON.stringify({ elite_discount_bps: 0, upstreams, models }));
  return file;
}
