import { z } from "zod";
import { resultWithin, sleep, systemClock } from "#platform/clock";
import { readDemo } from "./demo.ts";
import { type Call, receiveWebhooks } from "./demo-webhooks.ts";
import { readStartConfig } from "./start-config.ts";

/**
 * `npm run demo:async`: makes an image and a film as jobs of the demo's account. Follows both by polling, and by webhooks to
 * a receiver of its own.
 */
const jobs = {
  image: ["/images/generations", { model: "local/image", prompt: "A lighthouse at dusk", size: "512x512" }],
  // The local model takes this long, and tells its progress.
  film: [
    "/media/generations",
    { model: "local/video", input: { prompt: process.argv[2] ?? "slow:12000", duration: 3 } },
  ],
} as const;
const timeoutMs = 120_000;
const webhookMs = 30_000;
const say = (line: string) => void process.stdout.write(`${line}\n`);

const jobShape = z.object({
  id: z.string(),
  status: z.string(),
  queue_position: z.number().nullable(),
  progress: z.number().nullable(),
  cost_usd: z.string(),
  error: z.object({ message: z.string() }).nullable(),
});
type Job = z.infer<typeof jobShape>;
const file = z.object({ url: z.string() });
const resultShape = z.object({ data: z.array(file).default([]), files: z.array(file).default([]) });
const errorShape = z.object({ error: z.object({ message: z.string() }) });

const isEnded = ({ status }: Job) => status !== "queued" && status !== "in_progress";

function describe({ status, queue_position: position, progress, cost_usd, error }: Job): string {
  if (status === "queued") return position === null ? "queued" : `queued, number ${position}`;
  if (status === "in_progress") return progress === null ? "in progress" : `in progress, ${progress} %`;
  return `${status}, ${cost_usd} USD${error ? `: ${error.message}` : ""}`;
}

async function run(): Promise<void> {
  const { baseUrl, apiKey } = await readDemo(readStartConfig(process.env).DATA_DIR);
  const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(`${baseUrl}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...headers },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
  async function jsonOf(answer: Response): Promise<unknown> {
    const json: unknown = await answer.json();
    if (answer.ok) return json;
    throw new Error(errorShape.safeParse(json).data?.error.message ?? `The service responded with ${answer.status}.`);
  }
  const call: Call = async (method, path, body) => jsonOf(await send(method, path, body));

  async function follow(name: keyof typeof jobs): Promise<string> {
    const [path, body] = jobs[name];
    let answer = await send("POST", path, body, { prefer: "respond-async" });
    let job = jobShape.parse(await jsonOf(answer));
    for (let shown = ""; ; ) {
      const text = describe(job);
      if (text !== shown) say(`${name.padEnd(7)}  ${job.id}  ${text}`);
      shown = text;
      if (isEnded(job)) break;
      await sleep(systemClock, 1_000 * Number(answer.headers.get("retry-after") ?? 1));
      answer = await send("GET", `/jobs/${job.id}`);
      job = jobShape.parse(await jsonOf(answer));
    }
    const { data, files } = resultShape.parse(await call("GET", `/jobs/${job.id}/result`));
    for (const { url } of [...data, ...files]) say(`${name.padEnd(7)}  ${job.id}  ${url}`);
    return job.id;
  }

  const webhooks = await receiveWebhooks(call, say);
  try {
    const ids = await Promise.all([follow("image"), follow("film")]);
    const arrived = webhooks && (() => Promise.all(ids.map((id) => webhooks.arrival(id))));
    if (arrived && !(await resultWithin(systemClock, webhookMs, arrived)))
      throw new Error(
        `The webhooks did not arrive within ${webhookMs / 1_000} seconds. Does a worker serve the webhooks pool?`,
      );
  } finally {
    await webhooks?.stop();
  }
}

try {
  await run();
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
