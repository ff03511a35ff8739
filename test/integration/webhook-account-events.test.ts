import { expect, test } from "vitest";
import { eventOf } from "../../api/routes/webhook-events.ts";
import { createKeyStore, type KeyPatch } from "../../shared/key-records/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createProviderKeys } from "../../shared/provider-keys/index.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createWebhooks, type EventType, type NewEvent } from "../../shared/webhooks/index.ts";
import { topupCompleted, watchBalances, watchBudgets, watchKeyExpiry } from "../../workers/handlers/account-events.ts";
import { watchProviderKeys } from "../../workers/provider-keys/index.ts";
import { captureOf, held, holdOf, minuteMs, openAccount, startBank } from "../support/money-setup.ts";
import { usd } from "../support/payments-setup.ts";
import { migrated } from "../support/schema.ts";
import { startTopups } from "../support/topups-setup.ts";
import { webhookEnvironment } from "../support/webhook-receiver.ts";
import { hookUrl } from "../support/webhook-store-setup.ts";

/** An account with an endpoint for all events, and the scheduled jobs that derive them. */
async function start() {
  const { money, mongo, clock, account } = await startBank({ balanceNanoUsd: usd("100") });
  await migrated(mongo);
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(await webhookEnvironment()), clock });
  const keyStore = createKeyStore({ mongo, clock });
  await webhooks.endpoints.create(account, { url: hookUrl("a"), events: ["*"] });
  const deps = { money, keyStore, webhooks, clock };
  /** The process dies after it recorded the first event. */
  const dying = {
    ...deps,
    webhooks: {
      async record(event: NewEvent) {
        await webhooks.record(event);
        throw new Error("the process died");
      },
    },
  };
  async function events() {
    const list = await webhooks.deliveries.list(account, { limit: 100 }, {});
    const found = await Promise.all(list.toReversed().map(({ id }) => webhooks.deliveries.get(account, id)));
    const shown = await webhooks.notices.list(account, { limit: 100 });
    expect(new Set(shown)).toEqual(new Set(found.map(({ body }) => JSON.parse(body ?? "{}") as object)));
    return found.map(({ body }) => {
      const event = JSON.parse(body ?? "{}") as { type: EventType; data: object };
      const { type, data } = event;
      expect(eventOf(type).parse(event)).toEqual(event);
      return { type, ...data } as Record<string, unknown>;
    });
  }
  /** What a key spends in one call that has ended. */
  async function spend(key: string, cost: bigint): Promise<void> {
    await keyStore.used(key);
    const hold = await held(money, holdOf(account, cost, { key }));
    await money.charge(captureOf(hold, cost, { key, requestId: hold.requestId }));
  }
  const createKey = async (fields: KeyPatch, sharing: readonly string[] = []) =>
    (await keyStore.insert(account, fields, sharing)).key.id;
  return { ...deps, mongo, account, dying, events, spend, createKey };
}

test("balance.low is recorded once for each time that the balance falls below the threshold", async () => {
  const { money, account, dying, events, ...deps } = await start();
  await money.setAlert(account, usd("5"));
  const add = (amountNanoUsd: bigint) => money.credit(account, { amountNanoUsd, idempotencyKey: newRequestId() });
  await add(-usd("96"));
  const all = { ...deps, money };
  await expect(watchBalances(dying)).rejects.toThrow("died");
  // The balance rises before the event is noted as recorded: it is neither lost nor repeated.
  await add(usd("96"));
  for (let run = 0; run < 3; run++) await watchBalances(all);
  const low = { type: "balance.low", id: account, object: "balance", available_usd: "4.00", alert_below_usd: "5.00" };
  expect(await events()).toMatchObject([low]);
  expect(await money.account(account)).toMatchObject({ alertSince: null });
  deps.clock.later(minuteMs);
  await add(-usd("97"));
  for (let run = 0; run < 2; run++) await watchBalances(all);
  expect(await events()).toMatchObject([low, { ...low, available_usd: "3.00" }]);
});

test("an alert that another process began does not end before its event is recorded", async () => {
  const { account, events, ...deps } = await start();
  const { money, webhooks } = deps;
  const other = await openAccount(money, usd("1"));
  for (const id of [account, other]) await money.setAlert(id, usd("5"));
  const add = (amountNanoUsd: bigint) => money.credit(account, { amountNanoUsd, idempotencyKey: newRequestId() });
  const died = () => Promise.reject(new Error("the process died"));
  // While this process records the other account's event, a second one begins the account's alert and dies, and the balance rises.
  const interrupted = {
    async record(event: NewEvent) {
      await add(-usd("96"));
      await expect(money.watchBalances(died)).rejects.toThrow("died");
      await add(usd("96"));
      return webhooks.record(event);
    },
  };
  await watchBalances({ ...deps, webhooks: interrupted });
  expect(await events()).toEqual([]);
  for (let run = 0; run < 2; run++) await watchBalances(deps);
  expect(await events()).toMatchObject([{ type: "balance.low", id: account }]);
  expect(await money.account(account)).toMatchObject({ alertSince: null });
});

test("budget.threshold is recorded at 80 and 100 percent of each period, for own and shared budgets", async () => {
  const { dying, events, spend, createKey, ...deps } = await start();
  const noon = new Date(deps.clock.now()).setUTCHours(12, 0, 0, 0);
  deps.clock.later(noon + dayMs - deps.clock.now());
  const owner = await createKey({ name: "team", budget: { limitNanoUsd: usd("10"), period: "day" } });
  const child = await createKey({ name: "child" }, [owner]);
  const look = async () => {
    deps.clock.later(minuteMs);
    await watchBudgets(deps);
    return (await events()).map((event) => [
      event["threshold_percent"],
      (event["budget"] as { spent_usd: string }).spent_usd,
    ]);
  };
  await spend(owner, usd("7.9"));
  expect(await look()).toEqual([]);
  await spend(child, usd("0.2"));
  deps.clock.later(minuteMs);
  await expect(watchBudgets(dying)).rejects.toThrow("died");
  expect(await look()).toEqual([[80, "8.10"]]);
  expect(await events()).toMatchObject([
    {
      type: "budget.threshold",
      id: owner,
      object: "key",
      name: "team",
      budget: { limit_usd: "10.00", period: "day", spent_usd: "8.10", resets_at: (noon + 1.5 * dayMs) / 1_000 },
    },
  ]);
  await spend(owner, usd("3"));
  await look();
  expect(await look()).toEqual([
    [80, "8.10"],
    [100, "11.10"],
  ]);

  // The end of the day comes between the spending and the look at it.
  deps.clock.later(dayMs);
  await spend(child, usd("8.5"));
  deps.clock.later(dayMs);
  expect(await look()).toEqual([
    [80, "8.10"],
    [100, "11.10"],
    [80, "8.50"],
  ]);
  await spend(owner, usd("20"));
  expect(await look()).toHaveLength(5);
  // Nothing is due once a key has not been used for a while.
  deps.clock.later(20 * minuteMs);
  await watchBudgets(deps);
  deps.clock.later(20 * minuteMs);
  expect(await deps.keyStore.takeBudgetsDue()).toEqual([]);
});

test("key.expiring is recorded 7 days and 1 day before, unless the key was created later", async () => {
  const { dying, events, createKey, ...deps } = await start();
  const until = (days: number) => new Date(deps.clock.now() + days * dayMs);
  const id = await createKey({ name: "ci", expiresAt: until(30) });
  const short = await createKey({ name: "short", expiresAt: until(2) });
  await createKey({ name: "hour", expiresAt: until(0.04) });
  const revoked = await createKey({ expiresAt: until(30) });
  await deps.keyStore.revoke({ id: revoked });
  const seen = async () => (await events()).map((event) => [event["id"], event["days"]]);
  await watchKeyExpiry(deps);
  expect(await seen()).toEqual([]);
  deps.clock.later(1.5 * dayMs);
  for (let run = 0; run < 2; run++) await watchKeyExpiry(deps);
  expect(await seen()).toEqual([[short, 1]]);
  deps.clock.later(22 * dayMs);
  await expect(watchKeyExpiry(dying)).rejects.toThrow("died");
  await watchKeyExpiry(deps);
  expect(await seen()).toEqual([
    [short, 1],
    [id, 7],
  ]);
  // No worker ran until the key had expired.
  deps.clock.later(7 * dayMs);
  for (let run = 0; run < 2; run++) await watchKeyExpiry(deps);
  expect(await seen()).toEqual([
    [short, 1],
    [id, 7],
    [id, 1],
  ]);
});

test("provider_key.invalid is recorded once for each time that the credential becomes invalid", async () => {
  const { account, mongo, clock, dying, events, ...deps } = await start();
  const providerKeys = createProviderKeys({ mongo, clock });
  const key = { id: "pkey_1", upstream: "openai", config: {}, sealed: "sealed", label: "sk-...AbCd", version: 1 };
  await providerKeys.insert(account, { ...key, state: undefined });
  const note = async (status: "ok" | "invalid" | "no_permission", message?: string) => {
    clock.later(minuteMs);
    await providerKeys.noteState(account, key.id, 1, status, message);
  };
  await watchProviderKeys({ ...deps, providerKeys });
  await note("no_permission", "Not allowed.");
  await note("invalid", "Revoked.");
  await expect(watchProviderKeys({ ...dying, providerKeys })).rejects.toThrow("died");
  await watchProviderKeys({ ...deps, providerKeys });
  await note("invalid", "Revoked again.");
  await watchProviderKeys({ ...deps, providerKeys });
  await note("ok");
  await note("invalid", "Gone.");
  await watchProviderKeys({ ...deps, providerKeys });
  const event = {
    type: "provider_key.invalid",
    id: key.id,
    object: "provider_key",
    label: key.label,
    status: "invalid",
  };
  expect(await events()).toMatchObject([
    { ...event, status_message: "Revoked." },
    { ...event, status_message: "Gone." },
  ]);
});

test("topup.completed is recorded once, with the first payment", async () => {
  const { topups, account: open, pay, mongo, clock, ...all } = await startTopups();
  await migrated(mongo);
  const account = await open();
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(await webhookEnvironment()), clock });
  await webhooks.endpoints.create(account, { url: hookUrl("a"), events: ["topup.*"] });
  const run = (isDying = false) => {
    clock.later(minuteMs);
    return topups.creditArrived(new AbortController().signal, async (owner, topup) => {
      await webhooks.record(topupCompleted(owner, topup, new Date(clock.now())));
      if (isDying) throw new Error("the process died");
    });
  };
  const topup = await topups.open(account, usd("25"));
  await pay(topup);
  expect(await run(true)).toEqual({ credited: 0, failed: 1 });
  await run();
  await pay(topup, { amount: "1" });
  await run();
  const list = await webhooks.deliveries.list(account, { limit: 10 }, {});
  const bodies = await Promise.all(list.map(({ id }) => webhooks.deliveries.get(account, id)));
  expect(bodies.map(({ body }) => JSON.parse(body ?? "{}") as object)).toMatchObject([
    { type: "topup.completed", data: { id: topup.id, object: "topup", status: "completed", received_usd: "25.00" } },
  ]);
  expect(await all.money.account(account)).toMatchObject({ availableNanoUsd: usd("26") });
});
