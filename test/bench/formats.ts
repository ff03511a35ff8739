import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { converters, convertRequest } from "../../workers/conversion/index.ts";
import { asking, madeStreams, type StreamFormat, streamFormats } from "./format-streams.ts";
import { runLoad } from "./load.ts";
import { cpuMs, type Measured } from "./processes.ts";
import { median, table } from "./table.ts";
import type { Target } from "./workload.ts";

/** The cost of converting between the caller's format and the provider's. */

const perSecond = 150;
const warmUpMs = 6_000;
const roundMs = 4_000;
const aftermathMs = 250;
const timeoutMs = 30_000;

interface Pair {
  readonly caller: StreamFormat;
  readonly upstream: StreamFormat;
}

export interface PairRound extends Pair {
  readonly calls: number;
  readonly failed: number;
  /** Processor time per call of the service's own processes and its stores. */
  readonly cpuMsPerCall: number;
}

const pairs: readonly Pair[] = streamFormats.flatMap((caller) =>
  streamFormats.map((upstream) => ({ caller, upstream })),
);
const modelOf = (upstream: StreamFormat) => `local/${upstream}`;

/** A model for each format that a provider may speak; every caller can use all of them. */
export async function writeFormatsCatalog(dataDir: string, mockOrigin: string): Promise<string> {
  const openai = { provider: "openai", base_url: `${mockOrigin}/v1`, key_env: "OPENAI_API_KEY" };
  const upstreams = {
    chat: { ...openai, formats: ["chat"] },
    responses: { ...openai, formats: ["responses"] },
    messages: { provider: "anthropic", base_url: mockOrigin, key_env: "OPENAI_API_KEY" },
    gemini: { provider: "gemini", base_url: mockOrigin, key_env: "OPENAI_API_KEY" },
  };
  const model = (id: string, upstream: StreamFormat) => ({
    id,
    name: id,
    owned_by: "local",
    type: "text",
    released: "2026-01-01",
    context_length: 100_000,
    max_output_tokens: 10_000,
    pricing: { input: "0.40", output: "1.60" },
    upstreams: [{ upstream, model: "provider" }],
  });
  const models = [model("openai/gpt-4.1-mini", "chat"), ...streamFormats.map((each) => model(modelOf(each), each))];
  const file = join(dataDir, "formats-catalog.json");
  await writeFile(file, JSON.stringify({ elite_discount_bps: 0, upstreams, models }));
  return file;
}

const load = ({ caller, upstream }: Pair, { origin, headers }: Target, durationMs: number) => {
  const { path, body, end } = asking[caller];
  const model = modelOf(upstream);
  const pace = { kind: "open", perSecond } as const;
  return runLoad({
    targets: [{ origin, headers, path: path(model) }],
    body: JSON.stringify(body(model)),
    end,
    pace,
    durationMs,
    timeoutMs,
  });
};

/** Measures every pair in every round, at the same rate, so that the processor time per call is comparable. */
export async function measureFormats(target: Target, own: readonly Measured[], rounds: number): Promise<PairRound[]> {
  const results: PairRound[] = [];
  for (const pair of pairs) await load(pair, target, warmUpMs / 4);
  for (let turn = 0; turn < rounds; turn++) {
    const first = (turn * 5) % pairs.length;
    for (const pair of [...pairs.slice(first), ...pairs.slice(0, first)]) {
      const spent = () => own.reduce((sum, process) => sum + cpuMs(process), 0);
      const before = spent();
      const { calls, failed, firstFailure } = await load(pair, target, roundMs);
      await wait(aftermathMs);
      if (firstFailure !== undefined) throw new Error(`${pair.caller} to ${pair.upstream}: ${firstFailure}`);
      results.push({ ...pair, calls, failed, cpuMsPerCall: (spent() - before) / calls });
    }
  }
  return results;
}

const ours = { model: "local/chat", created: 1_750_000_000, id: "chatcmpl-req_0123456789abcdefghijklmn" };
const to = { model: "provider", cap: 1_000, capField: "max_tokens" } as const;
const estimate = { input: 25, output: 40 };

/** Runs only the codecs: the request, and the 40 chunks from the provider's parsed events to the caller's text. */
function codecsOnce({ caller, upstream }: Pair, events: readonly Record<string, unknown>[], body: object): number {
  const request = body as Record<string, unknown>;
  if (caller === upstream) {
    const { native } = converters[caller];
    native.prepare(request, to);
    const writer = native.stream(ours);
    let length = 0;
    for (const event of events) length += writer.write(event).length;
    return length + writer.end(estimate).length;
  }
  convertRequest(converters[caller], converters[upstream], request, to);
  const reader = converters[upstream].streamToChat();
  const writer = converters[caller].streamFromChat(ours, request);
  let length = 0;
  for (const event of events) for (const chunk of reader.write(event)) length += writer.write(chunk).length;
  return length + writer.end(estimate).length;
}

/** Processor time per call, in microseconds. */
function codecMicroseconds(pair: Pair): number {
  const matches = madeStreams[pair.upstream].flatMap((piece) => [...piece.matchAll(/^data: (\{.*)$/gm)]);
  const events = matches.map(([, json]) => JSON.parse(json as string) as Record<string, unknown>);
  const body = asking[pair.caller].body(modelOf(pair.upstream));
  const run = (times: number) => {
    const before = process.cpuUsage();
    for (let time = 0; time < times; time++) codecsOnce(pair, events, body);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / times;
  };
  run(2_000);
  return median(Array.from({ length: 7 }, () => run(500)));
}

const percent = (share: number) => `${share >= 0 ? "+" : ""}${(share * 100).toFixed(1)} %`;

export function renderFormats(rounds: readonly PairRound[], command: string, machine: readonly string[]): string {
  const cpu = ({ caller, upstream }: Pair) =>
    median(
      rounds.flatMap((round) => (round.caller === caller && round.upstream === upstream ? [round.cpuMsPerCall] : [])),
    );
  const both = (value: (pair: Pair) => number, { caller, upstream }: Pair) =>
    (value({ caller, upstream: caller }) + value({ caller: upstream, upstream })) / 2;
  const codecs = new Map(pairs.map((pair) => [`${pair.caller} ${pair.upstream}`, codecMicroseconds(pair)]));
  const codec = ({ caller, upstream }: Pair) => codecs.get(`${caller} ${upstream}`) ?? Number.NaN;
  const rows = pairs.map((pair) => {
    const { caller, upstream } = pair;
    const own = [caller, upstream, cpu(pair).toFixed(3)];
    if (caller === upstream) return [...own, "", "", codec(pair).toFixed(0), "", ""];
    const addedUs = codec(pair) - both(codec, pair);
    return [
      ...own,
      both(cpu, pair).toFixed(3),
      percent(cpu(pair) / both(cpu, pair) - 1),
      codec(pair).toFixed(0),
      addedUs.toFixed(0),
      percent(addedUs / 1_000 / both(cpu, pair)),
    ];
  });
  const head = [
    "caller",
    "provider",
    "CPU ms a call",
    "passed through",
    "difference",
    "codecs µs",
    "added µs",
    "of the call",
  ];
  return `# Formats, measured

Written by \`${command}\`: streams of 40 chunks, ${perSecond} a second, each caller's format to each provider's through one API and one
worker process. \`CPU ms a call\` is that of API, worker and stores together, the median of the rounds, in which all pairs take
turns. \`passed through\` is what the call would cost without translation: the mean of the two formats passed through as
they are, since such a call reads as the one and writes as the other. The codecs alone are measured inside one
process; \`of the call\` is what they add to the whole:

${machine.map((line) => `- ${line}`).join("\n")}

${table(head, rows, 2)}
`;
}
