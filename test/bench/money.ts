/**
 * Whole hold-decide-apply calls a second on one account: `node test/bench/money.ts [callers] [open holds]`, against
 * MONGODB_URI, a replica set with nothing of worth in it.
 */
import { createMoney } from "#money";
import { systemClock } from "#platform/clock";
import { newRequestId } from "#platform/ids";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo";

const [callers = 200, openHolds = 0] = process.argv.slice(2).map(Number);
const seconds = 5;
const uri = process.env.MONGODB_URI;
if (!uri) throw new Error("MONGODB_URI is missing: the address of a replica set with nothing of worth in it");

const log = createLogger("bench", "warn");
const mongo = await connectMongo(uri, systemClock, log);
await mongo.connection.dropDatabase();
const money = createMoney({ mongo, clock: systemClock, log });
await money.prepare();
const { id: account } = await money.createAccount({ name: "bench" });
await money.credit(account, { amountNanoUsd: 10n ** 18n, idempotencyKey: "bench" });

const holdOne = () => {
  const requestId = newRequestId();
  const amounts = { mostNanoUsd: 1_000_000n, leastNanoUsd: 1_000_000n };
  return { requestId, answer: money.hold({ account, requestId, ...amounts, expiresAt: Date.now() + 600_000 }) };
};

async function call(): Promise<void> {
  const { requestId, answer } = holdOne();
  const held = await answer;
  if (!held.ok) throw new Error(held.reason);
  await money.settle({
    account,
    requestId,
    key: "key_bench",
    endpoint: "/v1/chat/completions",
    model: "openai/gpt-4o-mini",
    heldNanoUsd: held.heldNanoUsd,
    costNanoUsd: 123_456n,
    status: "succeeded",
    upstream: "openai",
    attempts: 1,
    usage: { input: 1_000, output: 500 },
    estimated: false,
    queueMs: 2,
    firstTokenMs: 300,
    totalMs: 2_000,
  });
}

async function run(ms: number): Promise<number> {
  const until = performance.now() + ms;
  let done = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (; performance.now() < until; done++) await call();
    }),
  );
  return done;
}

await Promise.all(Array.from({ length: openHolds }, () => holdOne().answer));
await run(2_000);
const startedAt = performance.now();
const cpu = process.cpuUsage();
const done = await run(seconds * 1_000);
const tookMs = performance.now() - startedAt;
const used = process.cpuUsage(cpu);
const perSecond = Math.round((done / tookMs) * 1_000);
const cpuMs = ((used.user + used.system) / 1_000 / done).toFixed(3);
const { ok } = await money.check();
process.stdout.write(
  `${callers} callers, ${openHolds} other holds open: ${perSecond} calls/s, ${cpuMs} ms CPU a call, check ok: ${ok}\n`,
);
await mongo.close();
