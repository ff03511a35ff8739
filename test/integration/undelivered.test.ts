import { expect, test } from "vitest";
import type { Money } from "../../shared/money/index.ts";
import type { Mongo } from "../../shared/platform/mongo/connection.ts";
import { balance, captureOf, free, held, holdOf, minuteMs, startBank, startMoney } from "../support/money-setup.ts";
import { movableClock } from "../support/movable-clock.ts";
import { eventually } from "../support/service.ts";
import { asking, providerModel, startWithProvider } from "../support/service-setup.ts";

/** Makes the notes older: their age is by the clock of MongoDB, which no test moves. */
const silence = ({ connection }: Mongo, ms: number) =>
  connection.collection("apiInstances").updateMany({}, [{ $set: { notedAt: { $subtract: ["$notedAt", ms] } } }]);

const dead = async () => false;
const nothing = async () => undefined;

/** A call with this number at an API instance, and its charge. */
async function heldCall(money: Money, account: string, number: number, instance = "api_dead") {
  const hold = await held(money, holdOf(account, 100n));
  return {
    key: { _id: hold.requestId, account },
    charge: () => money.charge(captureOf(hold, 60n, { reply: { instance, number } })),
  };
}

test("an undelivered call of a dead instance is refunded once, whenever it is charged", async () => {
  const { money, mongo, account, clock, another } = await startBank();
  const call = (number: number) => heldCall(money, account, number);
  const [delivered, open, late] = [await call(0), await call(1), await call(2)];
  const endsAt = clock.now() + 10 * minuteMs;
  await money.noteDeliveries({ instance: "api_dead", next: 3, open: [open.key, late.key], endsAt });
  const [begun, elsewhere] = [await call(3), await heldCall(money, account, 3, "api_other")];
  for (const each of [delivered, open, begun, elsewhere]) await each.charge();

  const processes = [money, await another()];
  const refund = async () => {
    const counts = await Promise.all(processes.map((each) => each.refundUndelivered(dead, nothing)));
    return counts.some((count) => count > 0);
  };
  // However slow the test is, the note stays recent.
  await silence(mongo, -60_000);
  expect(await refund()).toBe(false);
  await silence(mongo, 80_000);
  expect(await money.refundUndelivered(async () => true, nothing)).toBe(0);
  expect(await refund()).toBe(true);
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 1_000n - 2n * 60n - 100n });
  await late.charge();
  expect(await refund()).toBe(true);
  expect(await refund()).toBe(false);
  expect(await balance(money, account)).toEqual(free(1_000n - 2n * 60n));
  const refunds = await money.ledger(account, { kind: "refund", limit: 10 });
  expect(refunds.map(({ id }) => id).toSorted()).toEqual(
    [open, late, begun].map(({ key }) => `refund:${key._id}`).toSorted(),
  );

  // MongoDB recovers once no more calls are expected: a worker that waited for it inserts its entry.
  const last = await call(4);
  clock.later(11 * minuteMs);
  const restarted = await another();
  expect(await restarted.refundUndelivered(dead, nothing)).toBe(0);
  await last.charge();
  expect(await restarted.refundUndelivered(dead, nothing)).toBe(1);
  clock.later(2 * minuteMs);
  expect(await restarted.refundUndelivered(dead, nothing)).toBe(0);
  expect(await mongo.connection.collection("apiInstances").countDocuments()).toBe(0);
  expect(await balance(money, account)).toEqual(free(1_000n - 2n * 60n));
});

test("an instance that cannot be looked at does not keep others from their refunds", async () => {
  const { money, mongo, account, clock } = await startBank();
  const instances = ["api_a", "api_b", "api_c"];
  for (const instance of instances) {
    const endsAt = clock.now() + 10 * minuteMs;
    await money.noteDeliveries({ instance, next: 0, open: [], endsAt });
    await (await heldCall(money, account, 0, instance)).charge();
  }
  const asked = new Set<string>();
  const isAlive = async (instance: string) => {
    asked.add(instance);
    if (instance === "api_b") throw new Error("Redis is unavailable");
    return false;
  };
  await silence(mongo, 20_000);
  const ended: string[] = [];
  const refund = async () => money.refundUndelivered(isAlive, async (instance) => ended.push(instance));
  expect(await refund()).toBe(2);
  clock.later(2 * minuteMs);
  await refund();
  await refund();
  expect(ended.toSorted()).toEqual(["api_a", "api_c"]);
  expect([...asked].toSorted()).toEqual(instances);
  expect(await balance(money, account)).toEqual(free(1_000n - 60n));
});

test("an answer counts as undelivered until its caller has all of it, though it is charged", async () => {
  const { clock, advance } = movableClock();
  const { service, provider, stores } = await startWithProvider({}, undefined, clock);
  const customer = await service.account("1.00");
  const { mongo } = await startMoney(stores.MONGODB_URI);
  const notes = mongo.connection.collection<{ next: number; open: { _id: string; account: string }[] }>("apiInstances");
  // Larger than the buffers of both ends of a connection.
  provider.respond({ text: "x".repeat(24 * 1024 * 1024) });
  const answer = await customer.post("/v1/chat/completions", asking(providerModel));
  const open = { _id: answer.headers.get("x-request-id") ?? "", account: customer.id };
  await eventually(async () => (await customer.ledger("usage")).length === 1);
  // The instance writes its note again.
  advance(5_000);
  await eventually(async () => (await notes.findOne({ open: [open] }))?.next === 1);
  expect((await answer.text()).length).toBeGreaterThan(24 * 1024 * 1024);
  await eventually(async () => (await notes.findOne({ open: [] }))?.next === 1);
});
