import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "#platform/clock";
import { openQueue } from "../support/jobs-setup.ts";
import { openMaintenance } from "../support/maintenance-setup.ts";
import { scrape } from "../support/metrics.ts";
import { openPayments, quoteDocument, settingsOf, settlePayment } from "../support/payments-setup.ts";
import { startService } from "../support/service.ts";
import { gate, never } from "../support/service-setup.ts";
import { drawing, payFor, startWorld } from "../support/x402-setup.ts";

const leaseMs = 60_000;

/** A service, and a payment sent by a process that died before its confirmation. */
async function startWithUnknownPayment() {
  const world = await startWorld();
  const { chain, stores } = world;
  // No lease ends by itself.
  let nowMs = Date.now();
  const clock = { ...systemClock, now: () => nowMs, later: (ms: number) => void (nowMs += ms) };
  const service = await startService(stores, { env: world.env, clock });
  const { memo, headers, account } = await payFor(world, service, drawing());
  const victim = await openPayments(stores.MONGODB_URI, clock, settingsOf(chain));
  const requestHash = ((await quoteDocument(victim, memo)) as unknown as { requestHash: string }).requestHash;
  chain.faults.next("getSignatureStatuses", { after: never });
  settlePayment(victim, headers["PAYMENT-SIGNATURE"], { requestHash }).catch(() => undefined);
  await expect.poll(() => chain.balance(chain.payTo)).toBe(40_000n);
  await victim.mongo.close();
  return { ...world, clock, service, memo, account, ...(await openMaintenance(stores)) };
}

const found = (service: { admin: (method: string, path: string) => Promise<Record<string, unknown>> }, path: string) =>
  service.admin("GET", path).catch(() => undefined);

test("a payment whose process died is settled by the job, is listed as owed, and its refund is recorded", async () => {
  const { service, clock, payer, memo, account, run, runUntil } = await startWithUnknownPayment();
  await run("reconcile-payments");
  expect(await found(service, `/accounts/${account}`)).toBeUndefined();
  clock.later(leaseMs);
  await runUntil(["reconcile-payments"], () => found(service, `/accounts/${account}`));
  const worker = await scrape(service.metrics.worker);
  expect(worker.value("inference_x402_payments_total", { outcome: "settled" })).toBe(1);
  expect(worker.value("inference_x402_payments_total", { outcome: "reopened" })).toBeUndefined();
  expect(await service.admin("GET", "/owed/total")).toEqual({
    object: "owed_total",
    owed_usd: "0.04",
    payments: 1,
  });
  const { data } = await service.admin<{ data: { transaction: string }[] }>("GET", "/owed");
  expect(data).toMatchObject([{ id: memo, account, payer: payer.address, paid_usd: "0.04", owed_usd: "0.04" }]);
  expect(data[0]?.transaction).toMatch(/^\w{64,88}$/);

  const transaction = "5".repeat(88);
  await service.admin("PATCH", `/accounts/${account}`, { frozen: true });
  // Entries of one millisecond are listed in the order of their ids.
  clock.later(1_000);
  await service.admin("POST", `/owed/${memo}/refunds`, { amount_usd: "0.04", transaction });
  expect(await service.admin("GET", `/accounts/${account}/ledger`)).toMatchObject({
    data: [
      { kind: "payout", amount_usd: "-0.04", transaction },
      { kind: "credit", amount_usd: "0.04", transaction: data[0]?.transaction },
    ],
  });
  expect(await service.admin("GET", "/owed")).toMatchObject({ data: [] });
  clock.later(27 * 3_600_000);
  await runUntil(["tidy-payments"], async () => (await found(service, `/accounts/${account}`)) === undefined);
  expect(await service.check()).toMatchObject({ ok: true });
});

test("a job that waits for the network runs once in a worker, and does not block the others", async () => {
  const { chain, stores, clock, add, run } = await startWithUnknownPayment();
  // The network is waited for as long as the test takes.
  const limit = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => new AbortController().signal);
  onTestFinished(() => limit.mockRestore());
  // Block every query of the chain for as long, and not for the worker's end.
  const { opened, open } = gate();
  onTestFinished(open);
  for (const method of ["getBlockHeight", "getSignatureStatuses", "getTransaction", "isBlockhashValid"])
    chain.faults.next(method, { after: opened }, 1_000);
  const asked = () => ["getBlockHeight", "getSignatureStatuses"].map((method) => chain.calls[method] ?? 0);
  const before = asked();
  clock.later(leaseMs);
  await Promise.all(Array.from({ length: 15 }, () => add("reconcile-payments")));
  await expect.poll(asked).not.toEqual(before);
  await run("gather-buybacks");
  await run("sweep-holds");
  const queue = await openQueue(stores, "maintenance");
  // One of these, or a scheduled one that came before them.
  const active = async () => (await queue.getActive()).filter(({ name }) => name === "reconcile-payments").length;
  await expect.poll(active).toBe(1);
  const more = asked().reduce((sum, count) => sum + count, 0) - before.reduce((sum, count) => sum + count, 0);
  expect(more).toBe(1);
});
