import { expect } from "vitest";
import { createFiles } from "../../shared/files/index.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { type Ask, createReplays, type KeptCall, type Replays } from "../../shared/replay/index.ts";
import { type Stores, testStores } from "../support/servers.ts";
import type { Customer } from "../support/service.ts";
import { images, makerImages } from "./generation-setup.ts";
import { decisionOf, held, holdOf, openAccount, startMoney } from "./money-setup.ts";

/** What one process has: on a connection of its own, which ends with the test. */
export async function openReplays(stores: Stores, clock: Clock = systemClock) {
  const { money, mongo } = await startMoney(stores.MONGODB_URI, clock);
  const log = createLogger("test", "silent");
  const files = createFiles({ config: loadConfig({ ...stores }), mongo, money, clock, log });
  const replays = createReplays({ mongo, money, files, clock });
  await Promise.all([files.prepare(), replays.prepare()]);
  return { money, files, replays };
}

/** A database of its own, a process on it, and an account. */
export async function startReplays(clock: Clock = systemClock, given?: Stores) {
  const stores = given ?? (await testStores());
  const { money, files, replays } = await openReplays(stores, clock);
  const account = await openAccount(money, 1_000_000n);
  const ask = (fields: Partial<Ask> = {}): Ask => ({
    account,
    key: "key-1",
    hash: "hash-1",
    requestId: newRequestId(),
    instance: "api_1",
    pool: "image",
    ...fields,
  });
  /** Holds for a request, and ends it in the ledger. */
  const decide = async (requestId: string, cost: bigint, status: "succeeded" | "failed" = "succeeded") => {
    const hold = await held(money, holdOf(account, 1_000n, { requestId }));
    await money.settle(decisionOf(hold, cost, { status }));
  };
  return { stores, money, files, replays, account, ask, decide, another: () => openReplays(stores, clock) };
}

export const alive = () => Promise.resolve(true);
export const dead = () => Promise.resolve(false);

export const keptCall = (text = '{"data":[]}', more: Partial<KeptCall> = {}): KeptCall => ({
  text,
  usage: { image: 2 },
  estimated: false,
  costNanoUsd: 600n,
  ...more,
});

/** Takes a key that must be free. */
export async function taken(replays: Replays, ask: Ask): Promise<string> {
  const begun = await replays.begin(ask, dead);
  expect(begun).toMatchObject({ kind: "new" });
  return begun.kind === "new" ? begun.id : "";
}

/** At the maker: 0.211 USD. */
export const atMaker = (prompt = "a lighthouse", fields: object = {}) => ({ model: makerImages, prompt, ...fields });
export const keyed = (key = "key-1") => ({ headers: { "idempotency-key": key } });

/** Status, headers that matter here, and the body as it came. */
export async function answerOf(answering: Promise<Response>) {
  const response = await answering;
  const { status, headers } = response;
  return {
    status,
    text: await response.text(),
    id: headers.get("x-request-id"),
    cost: headers.get("x-xm-cost-usd"),
    replayed: headers.get("idempotent-replayed"),
  };
}

export const post = (customer: Customer, body: object, key?: string, path = images) =>
  answerOf(customer.post(path, body, key === undefined ? {} : keyed(key)));
