import { ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import type { DeliveryNote, Instances, Money } from "../../shared/money/index.ts";
import type { Mongo } from "../../shared/platform/mongo/connection.ts";
import { availableUsd } from "../support/chaos-setup.ts";
import { balance, captureOf, free, held, holdOf, minuteMs, startBank, startMoney } from "../support/money-setup.ts";
import { movableClock } from "../support/movable-clock.ts";
import { startRedisThread } from "../support/redis-thread.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import {
  asking,
  localModel,
  noCapacity,
  providerModel,
  refusal,
  refusalOf,
  startWithProvider,
} from "../support/service-setup.ts";

/** Makes the notes older: their age is by the clock of MongoDB, which no test moves. */
const silence = ({ connection }: Mongo, ms: number) =>
  connection.collection("apiInstances").updateMany({}, [{ $set: { notedAt: { $subtract: ["$notedAt", ms] } } }]);

const none: ReadonlySet<string> = new Set();
/** An instance that is dead, and had told Redis nothing. */
const dead: Instances = { isAlive: async () => false, deliveredSince: async () => none, endHoldsOf: async () => {} };

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
  const note = money.deliveryNote("api_dead");
  await money.noteDeliveries({ note, next: 3, open: [open.key, late.key], endsAt });
  const [begun, elsewhere] = [await call(3), await heldCall(money, account, 3, "api_other")];
  for (const each of [delivered, open, begun, elsewhere]) await each.charge();

  const processes = [money, await another()];
  const refund = async () => {
    const counts = await Promise.all(processes.map((each) => each.refundUndelivered(dead)));
    return counts.some((count) => count > 0);
  };
  // However slow the test is, the note stays recent.
  await silence(mongo, -60_000);
  expect(await refund()).toBe(false);
  await silence(mongo, 90_000);
  expect(await money.refundUndelivered({ ...dead, isAlive: async () => true })).toBe(0);
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
  expect(await restarted.refundUndelivered(dead)).toBe(0);
  await last.charge();
  expect(await restarted.refundUndelivered(dead)).toBe(1);
  clock.later(2 * minuteMs);
  expect(await restarted.refundUndelivered(dead)).toBe(0);
  expect(await mongo.connection.collection("apiInstances").countDocuments()).toBe(0);
  expect(await balance(money, account)).toEqual(free(1_000n - 2n * 60n));
});

test("an instance that cannot be looked at does not keep others from their refunds", async () => {
  const { money, mongo, account, clock } = await startBank();
  const instances = ["api_a", "api_b", "api_c"];
  for (const instance of instances) {
    const endsAt = clock.now() + 10 * minuteMs;
    await money.noteDeliveries({ note: money.deliveryNote(instance), next: 0, open: [], endsAt });
    await (await heldCall(money, account, 0, instance)).charge();
  }
  const asked = new Set<string>();
  const isAlive = async (instance: string) => {
    asked.add(instance);
    if (instance === "api_b") throw new Error("Redis is unavailable");
    return false;
  };
  await silence(mongo, 60_000);
  const ended: string[] = [];
  const endHoldsOf = async (instance: string) => ended.push(instance);
  const refund = async () => money.refundUndelivered({ ...dead, isAlive, endHoldsOf });
  expect(await refund()).toBe(2);
  clock.later(2 * minuteMs);
  await refund();
  await refund();
  expect(ended.toSorted()).toEqual(["api_a", "api_c"]);
  expect([...asked].toSorted()).toEqual(instances);
  expect(await balance(money, account)).toEqual(free(1_000n - 60n));
});

test("an instance that counts as dead cannot write its note again; the calls of its next one are not refunded", async () => {
  const { money, mongo, account, clock } = await startBank();
  const note = money.deliveryNote("api_paused");
  const endsAt = clock.now() + 10 * minuteMs;
  const noted = (of: DeliveryNote, next: number) => money.noteDeliveries({ note: of, next, open: [], endsAt });
  const call = (number: number) => heldCall(money, account, number, "api_paused");
  const [delivered, lost] = [await call(0), await call(1)];
  for (const each of [delivered, lost]) await each.charge();
  expect(await noted(note, 0)).toBe(true);
  await silence(mongo, minuteMs);

  // It notes something while it is looked at: it is alive.
  const isAlive = async () => {
    await noted(note, 0);
    return false;
  };
  expect(await money.refundUndelivered({ ...dead, isAlive })).toBe(0);
  await silence(mongo, minuteMs);
  const deliveredSince = async () => new Set([delivered.key._id]);
  expect(await money.refundUndelivered({ ...dead, deliveredSince })).toBe(1);
  expect(await noted(note, 2)).toBe(false);

  const next = money.deliveryNote("api_paused", note);
  expect(await noted(next, next.firstNumber)).toBe(true);
  await (await call(next.firstNumber)).charge();
  // Its calls of before are refunded although it is alive; their holds are its own affair.
  await (await call(2)).charge();
  clock.later(2 * minuteMs);
  const alive = { ...dead, isAlive: async () => true, endHoldsOf: () => Promise.reject(new Error("alive")) };
  expect(await money.refundUndelivered({ ...alive, deliveredSince })).toBe(1);
  expect(await balance(money, account)).toEqual(free(1_000n - 2n * 60n));
});

test("of one death, each account gets refunds up to the limit; the other responses wait for an operator", async () => {
  const seen: object[] = [];
  const ignore = () => {};
  const writes = { ledger: ignore, holds: ignore, applications: ignore, leases: ignore };
  const observer = { captured: ignore, late: ignore, lost: (counts: object) => void seen.push(counts), writes };
  const { money, mongo, account, clock, another } = await startBank({ lostRefundsNanoUsd: 130n, observer });
  const { id: other } = await money.createAccount({ name: "other" });
  await money.credit(other, { amountNanoUsd: 1_000n, idempotencyKey: "opening" });
  const endsAt = clock.now() + 10 * minuteMs;
  await money.noteDeliveries({ note: money.deliveryNote("api_dead"), next: 0, open: [], endsAt });
  const numbered = (of: string, numbers: readonly number[]) =>
    Promise.all(numbers.map((number) => heldCall(money, of, number)));
  const first = [...(await numbered(account, [0, 1, 2])), ...(await numbered(other, [3]))];
  for (const each of first) await each.charge();
  await silence(mongo, minuteMs);
  const processes = [money, await another()];
  const refund = () => Promise.all(processes.map((each) => each.refundUndelivered(dead)));
  await money.refundUndelivered(dead);
  await refund();
  // Found later, also in a run after a recovery, they count with those before.
  const late = await numbered(account, [4]);
  for (const each of late) await each.charge();
  clock.later(2 * minuteMs);
  await refund();
  await refund();
  expect(await balance(money, account)).toEqual(free(1_000n - 2n * 60n));
  expect(await balance(money, other)).toEqual(free(1_000n));
  expect(seen[0]).toEqual({ refunded: 3, waiting: 1 });

  const { list, ...decide } = money.lostResponses;
  const waiting = await list({ limit: 10 });
  expect(waiting).toHaveLength(2);
  for (const each of waiting) expect(each).toMatchObject({ account, nanoUsd: 60n, state: "waiting" });
  const [one = "", two = ""] = waiting.map(({ id }) => id);
  expect(await list({ limit: 1, after: one })).toEqual([waiting[1]]);
  expect(await decide.refund(one)).toMatchObject({ id: one, state: "refunded" });
  expect(await decide.keep(two)).toMatchObject({ id: two, state: "kept" });
  await expect(decide.refund(two)).rejects.toMatchObject({ status: 404 });
  expect(await list({ limit: 10 })).toEqual([]);
  await refund();
  expect(await balance(money, account)).toEqual(free(1_000n - 60n));
});

test("Redis learns that an answer is delivered before anything else can delay this process", async () => {
  const stores = await testStores({ oneServer: true });
  const service = await startService(stores);
  const customer = await service.account("1.00");
  const { mongo } = await startMoney(stores.MONGODB_URI);
  const instance = await mongo.connection.collection<{ _id: string }>("apiInstances").findOne();
  const redis = await startRedisThread(stores.REDIS_URL);
  onTestFinished(() => redis.close().then(() => {}));
  let known: unknown;
  const end = Reflect.get(ServerResponse.prototype, "end") as () => ServerResponse;
  const spy = vi.spyOn(ServerResponse.prototype, "end").mockImplementation(function (this: ServerResponse, ...args) {
    // Runs before what Node does in the next tick after an end.
    if (this.hasHeader("x-xm-cost-usd"))
      process.nextTick(() => {
        known = redis.ask("zrange", `delivered:${instance?._id}`, "0", "-1");
      });
    return Reflect.apply(end, this, args);
  });
  onTestFinished(() => spy.mockRestore());
  const answer = await customer.post("/v1/chat/completions", asking(localModel));
  expect(await answer.json()).toMatchObject({ object: "chat.completion" });
  expect(known).toContain(answer.headers.get("x-request-id"));
});

test("calls of an instance that counted as dead meanwhile are not answered: none is delivered and refunded", async () => {
  const { clock, advance } = movableClock();
  const { service, provider, stores } = await startWithProvider({}, undefined, clock);
  const customer = await service.account("1.00");
  const { mongo } = await startMoney(stores.MONGODB_URI);
  const notes = mongo.connection.collection<{ _id: string; next: number; dead?: true }>("apiInstances");
  const gate = Promise.withResolvers<void>();
  provider.respond({ text: "x".repeat(24 * 1024 * 1024) }, { beforeHeaders: gate.promise });
  const unread = await customer.post("/v1/chat/completions", asking(providerModel));
  const waiting = customer.post("/v1/chat/completions", asking(providerModel));
  await provider.request(1);

  await notes.updateMany({}, { $set: { dead: true } });
  advance(5_000);
  expect(await refusalOf(await waiting)).toEqual(refusal({ ...noCapacity, message: /was paused/ }));
  gate.resolve();
  await expect(unread.text()).rejects.toThrow("terminated");
  await eventually(async () => (await customer.ledger("refund")).length === 1);
  await eventually(async () => (await availableUsd(service, customer)) === "1.00");
  expect((await customer.post("/v1/chat/completions", asking(providerModel))).status).toBe(200);
  await eventually(async () => (await notes.findOne({ dead: { $exists: false } }))?.next === 2 ** 32 + 1);
});

test("at a shutdown, who has had two seconds to read an answer is charged; who has not is refunded", async () => {
  const { clock, advance } = movableClock();
  const stops: (() => Promise<void>)[] = [];
  const env = { DRAIN_GRACE: "0" };
  const { service, provider, stores } = await startWithProvider(env, (stop) => stops.push(stop), clock);
  const customer = await service.account("1.00");
  const { mongo } = await startMoney(stores.MONGODB_URI);
  provider.always({ text: "x".repeat(24 * 1024 * 1024) });
  const idOf = ({ headers }: Response) => headers.get("x-request-id") ?? "";
  const slow = await customer.post("/v1/chat/completions", asking(providerModel));
  advance(2_000);
  const recent = await customer.post("/v1/chat/completions", asking(providerModel));
  expect(idOf(slow)).not.toBe(idOf(recent));
  for (const stop of stops) await stop();
  const open = [{ _id: idOf(recent), account: customer.id }];
  expect(await mongo.connection.collection("apiInstances").findOne()).toMatchObject({ next: 2, open });
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
