import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createAdminClient } from "./admin-client.ts";
import { type Demo, readDemo } from "./demo.ts";
import { readStartConfig } from "./start-config.ts";

/**
 * `npm run demo:traffic`: makes real calls to the demo's local models, so that its dashboard has data to show. The
 * ledger records real times only, so all calls fall on the current day; a run on another day adds that day to the
 * charts.
 */
const calls = 300;
const atOnce = 6;
const timeoutMs = 60_000;
const keyNames = ["web shop", "support bot", "nightly batch"];
const say = (line: string) => void process.stdout.write(`${line}\n`);

const messages = (content: string) => [{ role: "user", content }];
const questions = [
  "Write two sentences about lighthouses.",
  "What does a compiler do?",
  "Translate into French: the train is late.",
  "Name three rivers and the seas that they reach.",
  "Summarize: orders rose in May, and returns fell in June.",
];
const question = (n: number) => questions[n % questions.length] as string;
const chat = (content: string, fields: object = {}) =>
  ["/v1/chat/completions", { model: "local/chat", messages: messages(content), ...fields }] as const;

/** One function for each kind of call; the number varies its content. */
const kinds = {
  chat: (n: number) => chat(question(n)),
  "chat with a long answer": (n: number) => chat(`${question(n)} `.repeat(1 + (n % 40)), { max_tokens: 800 }),
  stream: (n: number) => chat(question(n), { stream: true, stream_options: { include_usage: true } }),
  embeddings: (n: number) =>
    ["/v1/embeddings", { model: "local/embeddings", input: questions.slice(0, 1 + (n % questions.length)) }] as const,
  rerank: (n: number) => ["/v1/rerank", { model: "local/rerank", query: question(n), documents: questions }] as const,
  image: (n: number) =>
    ["/v1/images/generations", { model: "local/image", prompt: question(n), size: "256x256", n: 1 + (n % 2) }] as const,
  speech: (n: number) => ["/v1/media/generations", { model: "local/speech", input: { text: question(n) } }] as const,
  "failing upstream": (n: number) => chat(`error:${[429, 502, 503][n % 3]}`),
  "slow chat": (n: number) => chat(`slow:${500 + (n % 5) * 400}`),
  "broken stream": (n: number) => chat(`stream-error:${1 + (n % 9)}`, { stream: true }),
} as const;
type Kind = keyof typeof kinds;

/** The number of calls of each kind in every twenty calls. */
const mix: Readonly<Record<Kind, number>> = {
  chat: 5,
  "slow chat": 1,
  "chat with a long answer": 2,
  stream: 5,
  embeddings: 2,
  rerank: 1,
  image: 1,
  speech: 1,
  "failing upstream": 1,
  "broken stream": 1,
};
const order = (Object.entries(mix) as [Kind, number][]).flatMap(([kind, times]) =>
  Array.from({ length: times }, () => kind),
);

const storedKeys = z.array(z.string()).length(keyNames.length);
const withKey = z.object({ key: z.string() });

/** Creates additional keys for the demo's account, and reuses them in later runs while they are accepted. */
async function ensureKeys({ baseUrl, adminToken, accountId }: Demo, dataDir: string): Promise<string[]> {
  const file = join(dataDir, "demo-traffic.json");
  try {
    const known = storedKeys.parse(JSON.parse(await readFile(file, "utf8")));
    const answers = await Promise.all(known.map((key) => fetch(`${baseUrl}/v1/balance`, { headers: bearer(key) })));
    if (answers.every(({ ok }) => ok)) return known;
  } catch {
    // The file does not exist before the first run.
  }
  const admin = createAdminClient({ url: baseUrl, token: adminToken.split(",")[0] ?? "" });
  const made: string[] = [];
  for (const name of keyNames)
    made.push(withKey.parse(await admin("POST", `/accounts/${accountId}/keys`, { name })).key);
  await writeFile(file, JSON.stringify(made), { mode: 0o600 });
  return made;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

async function run({ baseUrl, apiKey, ...demo }: Demo, dataDir: string): Promise<void> {
  const keys = [apiKey, ...(await ensureKeys({ baseUrl, apiKey, ...demo }, dataDir))];
  const outcomes = new Map<string, number>();
  const startedAt = performance.now();
  let next = 0;
  async function caller(): Promise<void> {
    while (next < calls) {
      const n = next++;
      const round = Math.floor(n / order.length);
      const kind = order[n % order.length] as Kind;
      const [path, body] = kinds[kind](n + 7 * round);
      const key = keys[(n + round) % keys.length] as string;
      const response = await fetch(`${baseUrl}${path}`, {
        method: "POST",
        headers: { ...bearer(key), "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const outcome = await response.text().then(
        () => `${kind}: ${response.status}`,
        () => `${kind}: broken off`,
      );
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (n > 0 && n % 50 === 0) say(`${n} of ${calls} calls`);
    }
  }
  await Promise.all(Array.from({ length: atOnce }, caller));
  for (const outcome of [...outcomes.keys()].toSorted())
    say(`${String(outcomes.get(outcome)).padStart(5)}  ${outcome}`);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  say(`${calls} calls in ${seconds} s, all of them today. See ${baseUrl}/dashboard`);
}

try {
  const { DATA_DIR } = readStartConfig(process.env);
  await run(await readDemo(DATA_DIR), DATA_DIR);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
