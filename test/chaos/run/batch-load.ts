import { setTimeout as wait } from "node:timers/promises";
import { nanoUsd } from "./aftermath.ts";
import type { BatchRecord, PlannedLine, ResultRecord } from "./batch-oracles.ts";
import { type Behavior, textModels } from "./plan.ts";
import { bills, promptOf } from "./provider.ts";
import { createRandom } from "./random.ts";
import type { ChaosCustomer, World } from "./world.ts";

/** Batches through the interface of callers, at any API that runs. */

const owners = ["first", "second", "third"] as const;
const endpoints = ["/v1/chat/completions", "/v1/embeddings"] as const;
type Endpoint = (typeof endpoints)[number];
const linesPerBatch = 2_500;

/** A provider that fails for good would postpone its line for a quarter of an hour. */
const behaviors = { ok: 92, slow: 3, failed: 1.5, limited: 0.2, reset: 0.8, truncated: 0.5, refused: 2 } as const;

interface PlannedBatch {
  readonly owner: (typeof owners)[number];
  readonly endpoint: Endpoint;
  readonly lines: readonly PlannedLine[];
}

/** The same seed and count give the same batches. */
export function planBatches(seed: number, count: number): PlannedBatch[] {
  const random = createRandom(seed);
  const sizes = Array.from({ length: Math.max(owners.length * endpoints.length, Math.ceil(count / linesPerBatch)) });
  let planned = 0;
  return sizes.map((_, batch) => {
    const end = Math.round((count * (batch + 1)) / sizes.length);
    const endpoint = endpoints[batch % endpoints.length] as Endpoint;
    const lines: PlannedLine[] = [];
    for (; planned < end; planned++) {
      const behavior = random.weighted<Behavior & keyof typeof behaviors>(behaviors);
      const isChat = endpoint === endpoints[0];
      lines.push({
        customId: `c${planned}`,
        behavior,
        model: isChat ? random.pick(textModels) : "chaos/embeddings",
        at: behavior === "refused" ? "all" : "twice",
        billNanoUsd: behavior === "refused" ? 0n : isChat ? bills.text : bills.embeddings,
      });
    }
    return { owner: owners[Math.floor(batch / endpoints.length) % owners.length] ?? "first", endpoint, lines };
  });
}

const bodyOf = (line: PlannedLine, endpoint: Endpoint) => {
  const prompt = promptOf({ marker: line.customId, behavior: line.behavior, at: line.at });
  return endpoint === "/v1/embeddings"
    ? { model: line.model, input: prompt }
    : { model: line.model, max_tokens: 100, messages: [{ role: "user", content: prompt }] };
};

const fileOf = ({ lines, endpoint }: PlannedBatch) =>
  lines
    .map((line) =>
      JSON.stringify({ custom_id: line.customId, method: "POST", url: endpoint, body: bodyOf(line, endpoint) }),
    )
    .join("\n");

/** Repeats a request that fails because of a fault at another instance. */
async function send(world: World, { key }: ChaosCustomer, path: string, body?: FormData | object): Promise<string> {
  const isForm = body instanceof FormData;
  for (let tries = 1; ; tries++) {
    const apis = world.running("api");
    try {
      const answer = await fetch(`${apis[tries % apis.length]?.origin}${path}`, {
        method: body ? "POST" : "GET",
        headers: { authorization: `Bearer ${key}`, ...(body && !isForm && { "content-type": "application/json" }) },
        ...(body && { body: isForm ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(60_000),
      });
      const text = await answer.text();
      if (answer.ok) return text;
      throw new Error(`${path}: ${answer.status} ${text}`);
    } catch (error) {
      if (tries === 60) throw error;
      await wait(1_000);
    }
  }
}

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly x_cost_usd: string;
}
const endings = ["completed", "failed", "expired", "cancelled"];

interface Created {
  readonly planned: PlannedBatch;
  readonly id: string;
}

export async function createBatches(world: World, planned: readonly PlannedBatch[]): Promise<Created[]> {
  const created: Created[] = [];
  for (const each of planned) {
    const customer = world.customers[each.owner];
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([fileOf(each)]), "in.jsonl");
    const { id: file } = JSON.parse(await send(world, customer, "/v1/files", form)) as Batch;
    const input = { input_file_id: file, endpoint: each.endpoint, completion_window: "24h" };
    const { id } = JSON.parse(await send(world, customer, "/v1/batches", input)) as Batch;
    created.push({ planned: each, id });
  }
  return created;
}

const find = async (world: World, { planned, id }: Created) =>
  JSON.parse(await send(world, world.customers[planned.owner], `/v1/batches/${id}`)) as Batch;

/** Resolves when all batches have ended, or at the time limit. */
export async function untilEnded(
  world: World,
  created: readonly Created[],
  limitMs: number,
  say: (text: string) => void,
) {
  const startedAt = Date.now();
  for (let saidAt = startedAt; Date.now() - startedAt < limitMs; await wait(500)) {
    const batches = await Promise.all(created.map((each) => find(world, each)));
    if (batches.every(({ status }) => endings.includes(status))) return;
    if (Date.now() - saidAt < 20_000) continue;
    saidAt = Date.now();
    const lines = batches.reduce((sum, { request_counts: of }) => sum + of.completed + of.failed, 0);
    say(`${String(Math.round((saidAt - startedAt) / 1_000)).padStart(4)} s  ${lines} lines are recorded`);
  }
}

interface Line {
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly request_id: string; readonly x_cost_usd: string } | null;
}

/** The batch with all its results, as its owner reads them. */
export async function readBatch(world: World, created: Created): Promise<BatchRecord> {
  const { planned, id } = created;
  const customer = world.customers[planned.owner];
  const batch = await find(world, created);
  const read = async (file: string | null, isError: boolean): Promise<ResultRecord[]> => {
    if (file === null) return [];
    const text = await send(world, customer, `/v1/files/${file}/content`);
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const { custom_id: customId, response } = JSON.parse(line) as Line;
        return {
          customId,
          isError,
          requestId: response?.request_id,
          status: response?.status_code,
          costNanoUsd: nanoUsd(response?.x_cost_usd ?? "0"),
        };
      });
  };
  return {
    id,
    account: customer.id,
    status: batch.status,
    lines: planned.lines,
    counts: batch.request_counts,
    costNanoUsd: nanoUsd(batch.x_cost_usd),
    results: [...(await read(batch.output_file_id, false)), ...(await read(batch.error_file_id, true))],
  };
}
