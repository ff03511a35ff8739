import { z } from "zod";
import { formatUsd, parseUsd } from "#money";
import { sleep, systemClock } from "#platform/clock";
import { readDemo } from "./demo.ts";
import { readStartConfig } from "./start-config.ts";

/**
 * `npm run demo:batch`: makes a batch of 2,000 calls of the demo's chat model, follows it with a progress bar, and prints what
 * it cost beside the price of the same calls outside a batch. Takes another number of calls as its argument.
 */
const lines = z.coerce
  .number()
  .int()
  .min(1)
  .max(50_000)
  .parse(process.argv[2] ?? 2_000);
const model = "local/chat";
const endpoint = "/v1/chat/completions";
const pollMs = 500;
const timeoutMs = 60_000;
const barWidth = 40;

const withId = z.object({ id: z.string() });
const batchShape = z.object({
  id: z.string(),
  status: z.string(),
  request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
  usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }),
  errors: z.object({ data: z.array(z.object({ message: z.string() })) }).nullable(),
  output_file_id: z.string().nullable(),
  x_cost_usd: z.string(),
  x_estimated_max_cost_usd: z.string(),
  x_paused: z.string().nullable(),
});
type Batch = z.infer<typeof batchShape>;
const price = z.object({ unit: z.literal("1M_tokens"), list_usd: z.string() });
const modelShape = z.object({
  x_batch_discount_bps: z.int(),
  x_pricing: z.object({ input: price, output: price }),
});
const errorShape = z.object({ error: z.object({ message: z.string() }) });

const ended = ["completed", "failed", "expired", "cancelled"];
const { stdout } = process;
const say = (line: string) => void stdout.write(`${line}\n`);

const lineOf = (n: number): string => {
  const messages = [{ role: "user", content: `Write two sentences about lighthouse ${n}.` }];
  const body = { model, max_tokens: 50, messages };
  return `${JSON.stringify({ custom_id: String(n), method: "POST", url: endpoint, body })}\n`;
};

/** A terminal shows one line that is overwritten; a file gets a line for each change. */
function createBar() {
  let shown = "";
  return ({ status, request_counts: { total, completed, failed }, x_paused: paused }: Batch) => {
    const done = completed + failed;
    const filled = total > 0 ? Math.floor((done / total) * barWidth) : 0;
    const bar = "#".repeat(filled).padEnd(barWidth, ".");
    const text = `[${bar}] ${done} of ${total}, ${failed} failed, ${paused ?? status.replaceAll("_", " ")}`;
    if (text === shown) return;
    shown = text;
    stdout.write(stdout.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  };
}

/** The list price of the same tokens in live calls. */
function livePrice({ input_tokens: input, output_tokens: output }: Batch["usage"], model: z.infer<typeof modelShape>) {
  const priceOf = (tokens: number, { list_usd: usd }: z.infer<typeof price>) => BigInt(tokens) * (parseUsd(usd) ?? 0n);
  const { x_pricing: pricing } = model;
  return formatUsd((priceOf(input, pricing.input) + priceOf(output, pricing.output)) / 1_000_000n);
}

async function run(): Promise<void> {
  const { baseUrl, apiKey } = await readDemo(readStartConfig(process.env).DATA_DIR);
  async function call<T>(shape: z.ZodType<T>, method: string, path: string, body?: FormData | object): Promise<T> {
    const isForm = body instanceof FormData;
    const answer = await fetch(`${baseUrl}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...(!isForm && { "content-type": "application/json" }) },
      ...(body && { body: isForm ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const json: unknown = await answer.json();
    if (answer.ok) return shape.parse(json);
    throw new Error(errorShape.safeParse(json).data?.error.message ?? `The service responded with ${answer.status}.`);
  }

  const form = new FormData();
  form.append("purpose", "batch");
  form.append(
    "file",
    new File(
      Array.from({ length: lines }, (_, n) => lineOf(n)),
      "demo.jsonl",
    ),
  );
  const { id: input_file_id } = await call(withId, "POST", "/files", form);
  const startedMs = performance.now();
  const order = { input_file_id, endpoint, completion_window: "24h" };
  let batch = await call(batchShape, "POST", "/batches", order);
  say(`${batch.id}, ${lines} calls of ${model}`);
  const show = createBar();
  for (;;) {
    show(batch);
    if (ended.includes(batch.status)) break;
    await sleep(systemClock, pollMs);
    batch = await call(batchShape, "GET", `/batches/${batch.id}`);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  if (stdout.isTTY) say("");
  if (batch.status !== "completed")
    throw new Error(batch.errors?.data[0]?.message ?? `The batch ended as ${batch.status}.`);

  const listed = await call(modelShape, "GET", `/models/${model}`);
  const { input_tokens: input, output_tokens: output } = batch.usage;
  const { request_counts: counts, x_cost_usd: cost, x_estimated_max_cost_usd: most } = batch;
  say(`${counts.completed} calls in ${seconds.toFixed(1)} s, ${input} tokens in, ${output} tokens out`);
  say(`cost       ${cost} USD; the estimate was at most ${most} USD`);
  say(
    `live price ${livePrice(batch.usage, listed)} USD; batches have a discount of ${listed.x_batch_discount_bps / 100} %`,
  );
  if (batch.output_file_id) say(`results    ${baseUrl}/v1/files/${batch.output_file_id}/content`);
  say(`dashboard  ${baseUrl}/dashboard/batches/${batch.id}`);
}

try {
  await run();
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
