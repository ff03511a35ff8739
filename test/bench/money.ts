/**
 * Measures whole hold-capture-settle calls per second on one account, and the cost of a call refused for its balance:
 * `node test/bench/money.ts [callers] [open holds] [accounts]`. It starts its own MongoDB. With several accounts the
 * callers are spread over them.
 */
import { newRequestId } from "#platform/ids";
import { onMongo, openMoney, print } from "./money-bench.ts";

const [callers = 200, openHolds = 0, accounts = 1] = process.argv.slice(2).map(Number);
const seconds = 5;

async function measure(uri: string): Promise<void> {
  const { mongo, money } = await openMoney(uri);

  async function openAccount(amountNanoUsd: bigint): Promise<string> {
    const { id } = await money.createAccount({ name: "bench" });
    await money.credit(id, { amountNanoUsd, idempotencyKey: "bench" });
    return id;
  }
  const opened = await Promise.all(Array.from({ length: accounts }, () => openAccount(10n ** 18n)));
  const accountOf = (caller: number) => opened[caller % accounts] as string;

  const holdOne = (account: string) => {
    const requestId = newRequestId();
    const amounts = { maxNanoUsd: 1_000_000n, minNanoUsd: 1_000_000n };
    return { requestId, answer: money.hold({ account, requestId, ...amounts, expiresAt: Date.now() + 600_000 }) };
  };

  async function call(account: string): Promise<void> {
    const { requestId, answer } = holdOne(account);
    const held = await answer;
    if (!held.ok) throw new Error(held.reason);
    await money.charge({
      account,
      requestId,
      key: "key_bench",
      endpoint: "/v1/chat/completions",
      model: "openai/gpt-4o-mini",
      heldNanoUsd: held.heldNanoUsd,
      costNanoUsd: 123_456n,
      status: "succeeded",
      upstream: "openai",
      attempts: [{ upstream: "openai", startedMs: 1, durationMs: 40, outcome: "succeeded" }],
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
      Array.from({ length: callers }, async (_, caller) => {
        for (; performance.now() < until; done++) await call(accountOf(caller));
      }),
    );
    return done;
  }

  await Promise.all(Array.from({ length: openHolds }, (_, at) => holdOne(accountOf(at)).answer));
  await run(2_000);
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const done = await run(seconds * 1_000);
  const tookMs = performance.now() - startedAt;
  const used = process.cpuUsage(cpu);
  const perSecond = Math.round((done / tookMs) * 1_000);
  const cpuMs = ((used.user + used.system) / 1_000 / done).toFixed(3);
  const { ok } = await money.check();
  print(
    `${callers} callers on ${accounts} accounts, ${openHolds} other holds open: ${perSecond} calls/s, ${cpuMs} ms CPU a call, check ok: ${ok}`,
  );

  /** The number of commands on MongoDB so far. */
  async function commands(): Promise<{ readonly reads: number; readonly writes: number }> {
    const { metrics } = (await mongo.connection.getClient().db().command({ serverStatus: 1 })) as {
      metrics: { commands: Record<"find" | "update" | "insert", { total: bigint }> };
    };
    const { find, update, insert } = metrics.commands;
    return { reads: Number(find.total), writes: Number(update.total + insert.total) };
  }

  async function refused(what: string, account: string, calls: number): Promise<void> {
    const ask = { account, maxNanoUsd: 10n ** 15n, minNanoUsd: 10n ** 15n, expiresAt: Date.now() + 600_000 };
    const named = {
      kind: "usage",
      key: "key_bench",
      endpoint: "/v1/chat/completions",
      insufficientText: () => "",
    } as const;
    const before = await commands();
    const cpuBefore = process.cpuUsage();
    const from = performance.now();
    for (let at = 0; at < calls; at++)
      await money.holdForCall({ ...ask, ...named, requestId: newRequestId() }).catch(() => {});
    const { user, system } = process.cpuUsage(cpuBefore);
    const after = await commands();
    const each = (sum: number) => (sum / calls).toFixed(3);
    print(
      `refused, ${what}: ${each(after.reads - before.reads)} reads and ${each(after.writes - before.writes)} writes a call, ` +
        `${each((user + system) / 1_000)} ms CPU, ${each(performance.now() - from)} ms`,
    );
  }

  const unfunded = await openAccount(2_000_000n);
  await refused("nothing held", unfunded, 2_000);
  await holdOne(unfunded).answer;
  await refused("with an open hold", unfunded, 200);
  await mongo.close();
}

await onMongo(measure);
