import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { createBatches } from "../../shared/batches/index.ts";
import { createDetachedCalls, detachedCallsSchema, type StoredAnswer } from "../../shared/detached-calls/index.ts";
import { createFiles, filesSchema } from "../../shared/files/index.ts";
import {
  type ClaimRequest,
  createIdempotencyStore,
  type IdempotencyStore,
  idempotencySchema,
} from "../../shared/idempotency/index.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createStoredResponses, responsesSchema } from "../../shared/stored-responses/index.ts";
import { createWebhooks, webhooksSchema } from "../../shared/webhooks/index.ts";
import { images, providerImages } from "./generation-setup.ts";
import { captureOf, held, holdOf, openAccount, startMoney } from "./money-setup.ts";
import { migrated } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";
import type { Customer } from "./service.ts";

/** The stores of one process, on a separate connection, which is closed after the test. */
export async function openIdempotency(stores: Stores, clock: Clock = systemClock) {
  const { money, mongo } = await startMoney(stores.MONGODB_URI, clock);
  const log = createLogger("test", "silent");
  const config = loadConfig({ ...stores });
  const files = createFiles({ config, mongo, money, clock, log });
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(config), clock });
  const detachedCalls = createDetachedCalls({ mongo, money, files, webhooks, clock, log });
  const batches = createBatches({ mongo, files, webhooks, claimMs: config.API_TIMEOUT_MS, clock, log });
  const idempotency = createIdempotencyStore({ mongo, money, detachedCalls, clock });
  const responses = createStoredResponses({ mongo, files, clock, log });
  await migrated(mongo, [filesSchema, detachedCallsSchema, idempotencySchema, responsesSchema, webhooksSchema]);
  return { money, files, detachedCalls, batches, idempotency, responses, mongo };
}

/** A new database, a process on it, and an account. */
export async function startIdempotency(clock: Clock = systemClock, given?: Stores) {
  const stores = given ?? (await testStores());
  const { money, files, detachedCalls, batches, idempotency, responses, mongo } = await openIdempotency(stores, clock);
  const account = await openAccount(money, 1_000_000n);
  const ask = (fields: Partial<ClaimRequest> = {}): ClaimRequest => ({
    account,
    key: "key-1",
    hash: "hash-1",
    requestId: newRequestId(),
    instance: "api_1",
    pool: "image",
    ...fields,
  });
  /** Returns false if another answer of the request is stored. */
  const store = async (requestId: string, answer: StoredAnswer) =>
    isDeepStrictEqual(await detachedCalls.storeAnswer(account, requestId, answer), answer);
  const stored = (requestId: string) => detachedCalls.answer(account, requestId);
  /** Takes a hold for a request and settles it. */
  const charge = async (requestId: string, cost: bigint, status: "succeeded" | "failed" = "succeeded") => {
    const hold = await held(money, holdOf(account, 1_000n, { requestId }));
    await money.charge(captureOf(hold, cost, { status }));
  };
  return {
    stores,
    money,
    files,
    detachedCalls,
    batches,
    idempotency,
    responses,
    mongo,
    store,
    stored,
    account,
    ask,
    charge,
    another: () => openIdempotency(stores, clock),
  };
}

export const alive = () => Promise.resolve(true);
export const dead = () => Promise.resolve(false);

export const storedCall = (text = '{"data":[]}', more: Partial<StoredAnswer> = {}): StoredAnswer => ({
  text,
  usage: { image: 2 },
  estimated: false,
  costNanoUsd: 600n,
  ...more,
});

/** Claims a key that must be free. */
export async function claimNew(idempotency: IdempotencyStore, ask: ClaimRequest): Promise<string> {
  const claim = await idempotency.claim(ask, dead);
  expect(claim).toMatchObject({ kind: "new" });
  return claim.kind === "new" ? claim.id : "";
}

/** A call that costs 0.211 USD at the provider. */
export const atProvider = (prompt = "a lighthouse", fields: object = {}) => ({
  model: providerImages,
  prompt,
  response_format: "url",
  ...fields,
});
export const keyed = (key = "key-1") => ({ headers: { "idempotency-key": key } });

/** The status, the relevant headers, and the text of the body. */
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
