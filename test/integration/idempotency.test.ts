import { randomBytes } from "node:crypto";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import mongoose from "mongoose";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Claim } from "../../shared/idempotency/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId, randomBase62 } from "../../shared/platform/ids.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { alive, dead, keptCall, openIdempotency, startIdempotency, taken } from "../support/idempotency-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { times } from "../support/money-setup.ts";
import { ownServers, testStores } from "../support/servers.ts";

const day = 24 * 3_600_000;
/** Compresses to so many bytes, or a few more. */
const random = (bytes: number) => randomBytes(bytes).toString("base64");

async function indexesOf(uri: string): Promise<unknown[]> {
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    return await connection.collection("idempotency").indexes();
  } finally {
    await connection.close();
  }
}

const news = (begun: readonly Claim[]) => begun.filter(({ kind }) => kind === "new");

describe("a key", () => {
  test("is taken by the first request, and the same request again finds it running", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask();
    await taken(idempotency, first);
    const asked: unknown[] = [];
    const begun = await idempotency.claim(ask(), async (owner) => {
      asked.push(owner);
      return true;
    });
    expect(begun).toEqual({ kind: "running" });
    expect(asked).toEqual([{ requestId: first.requestId, instance: "api_1", pool: "image" }]);
  });

  test.each([0, 256, 10_000])("of %i characters is refused by name", async (length) => {
    const { idempotency, ask } = await startIdempotency();
    await expect(idempotency.claim(ask({ key: "k".repeat(length) }), dead)).rejects.toMatchObject({
      status: 400,
      code: "invalid_value",
      param: "idempotency-key",
    });
  });

  test("of 1 and of 255 characters is taken, and every one is another", async () => {
    const { idempotency, ask } = await startIdempotency();
    const keys = ["k", "K", " k", "k".repeat(255), `${"k".repeat(254)}l`, "ключ", '","', "\\"];
    const begun = await Promise.all(keys.map((key) => idempotency.claim(ask({ key }), alive)));
    expect(news(begun)).toHaveLength(keys.length);
  });

  test("is the account's own, however names and keys are put together", async () => {
    const { idempotency, ask } = await startIdempotency();
    const whose = [
      ["a", "b"],
      ["b", "a"],
      ["ab", ""],
      ["a", 'b","c'],
      ['a","b', "c"],
    ];
    const begun = await Promise.all(
      whose.map(([account = "", key]) => idempotency.claim(ask({ account, key: `${key}.` }), alive)),
    );
    expect(news(begun)).toHaveLength(whose.length);
  });

  test("that comes with another body is a conflict, while it runs and when it was answered", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    const conflict = { status: 409, code: "conflict", shouldRetry: false };
    await expect(idempotency.claim(ask({ hash: "hash-2" }), alive)).rejects.toMatchObject(conflict);
    await idempotency.store(id, first.requestId, keptCall());
    await decide(first.requestId, 600n);
    await expect(idempotency.claim(ask({ hash: "hash-2" }), alive)).rejects.toMatchObject(conflict);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "answered" });
  });

  test("of a request that ended before anything was decided is free", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.release(id, "req_other");
    expect(await idempotency.claim(ask(), alive)).toEqual({ kind: "running" });
    await idempotency.release(id, first.requestId);
    await idempotency.release(id, first.requestId);
    // Another body too: nothing was begun with the first.
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toEqual({ kind: "new", id });
  });

  test("is not released once its answer is kept", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    await idempotency.release(id, first.requestId);
    await decide(first.requestId, 600n);
    expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered", requestId: first.requestId });
  });
});

describe("an answer", () => {
  test("counts once the call has succeeded, with the cost of the ledger", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    expect(await idempotency.store(id, first.requestId, keptCall("the answer", { costNanoUsd: 5_000n }))).toBe(true);
    expect(await idempotency.claim(ask(), alive)).toEqual({ kind: "running" });
    // The hold was 1,000: more is not charged.
    await decide(first.requestId, 5_000n);
    expect(await idempotency.claim(ask(), alive)).toEqual({
      kind: "answered",
      requestId: first.requestId,
      hash: "hash-1",
      answer: { text: "the answer", costNanoUsd: 1_000n },
    });
  });

  test("that cost nothing is an answer", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    await idempotency.store(await taken(idempotency, first), first.requestId, keptCall("{}", { costNanoUsd: 0n }));
    await decide(first.requestId, 0n);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ answer: { text: "{}", costNanoUsd: 0n } });
  });

  test("of a call that failed after all is none: the key is free, and what was kept goes", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const [first, second] = [ask(), ask({ hash: "a corrected body" })];
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    await decide(first.requestId, 0n, "failed");
    expect(await idempotency.claim(second, alive)).toEqual({ kind: "new", id, before: first.requestId });
    expect(await idempotency.stored(id, first.requestId)).toBeUndefined();
    expect(await idempotency.stored(id, second.requestId)).toBeUndefined();
    // Who had it keeps nothing any more.
    expect(await idempotency.store(id, first.requestId, keptCall("late"))).toBe(false);
    expect(await idempotency.claim(ask({ hash: second.hash }), alive)).toEqual({ kind: "running" });
  });

  test.each([
    ["empty", "", false],
    ["small", "x", false],
    ["of few characters and many bytes", "€".repeat(30_000), false],
    ["of five megabytes that compress to less than one", '"b64_json":"'.padEnd(5_000_000, "A€\u0000\\"), false],
    ["of just less than 1 MB compressed", random(1_040_000), false],
    ["of more than 1 MB compressed", random(1_060_000), true],
  ])("%s comes back as it was", async (_, text, isLarge) => {
    const { idempotency, files, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    const usage = { image: 3, minute: 0.083333, character: 2 ** 33, input_image: 0 };
    const headers = { "x-ignored-params": "top_k, metadata" };
    const call = keptCall(text, { usage, estimated: true, costNanoUsd: 2n ** 53n + 1n, headers });
    await idempotency.store(id, first.requestId, call);
    const inStorage = files.getAnswer(first.requestId).then(
      () => true,
      () => false,
    );
    expect(await inStorage).toBe(isLarge);
    expect(await idempotency.stored(id, first.requestId)).toEqual(call);
    await decide(first.requestId, 600n);
    const again = await idempotency.claim(ask(), alive);
    expect(again).toMatchObject({ kind: "answered", answer: { costNanoUsd: 600n, headers } });
    expect(again.kind === "answered" && "text" in again.answer && again.answer.text === text).toBe(true);
  });

  test("that is kept again, as after a lost connection, is the same answer", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    expect(await idempotency.store(id, first.requestId, keptCall())).toBe(true);
    expect(await idempotency.store(id, first.requestId, keptCall())).toBe(true);
    await decide(first.requestId, 600n);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "answered" });
  });

  test("is nobody else's: neither by request nor by key", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    expect(await idempotency.stored(id, newRequestId())).toBeUndefined();
    expect(await idempotency.stored("another", first.requestId)).toBeUndefined();
    expect(await idempotency.store(id, newRequestId(), keptCall("theirs"))).toBe(false);
    expect(await idempotency.stored(id, first.requestId)).toEqual(keptCall());
  });

  test("that is an upload counts at once, with a hash that was known only then", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask({ hash: undefined, pool: undefined });
    const id = await taken(idempotency, first);
    expect(await idempotency.claim(ask({ hash: undefined }), alive)).toEqual({ kind: "running" });
    await idempotency.store(id, first.requestId, { upload: "upl_1" }, "hash-of-the-file");
    expect(await idempotency.claim(ask({ hash: undefined }), alive)).toEqual({
      kind: "answered",
      requestId: first.requestId,
      hash: "hash-of-the-file",
      answer: { upload: "upl_1" },
    });
    // A call under the key of an upload.
    await expect(idempotency.claim(ask({ hash: "hash-1" }), alive)).rejects.toMatchObject({ code: "conflict" });
    expect(await idempotency.stored(id, first.requestId)).toBeUndefined();
  });
});

describe("24 hours", () => {
  test("until then the answer stands; after them the key is new, for any body", async () => {
    const clock = createManualClock(Date.now());
    const { idempotency, ask, decide } = await startIdempotency(clock);
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    await decide(first.requestId, 600n);
    clock.advance(day - 1);
    expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered" });
    await expect(idempotency.claim(ask({ hash: "hash-2" }), dead)).rejects.toMatchObject({ code: "conflict" });
    clock.advance(1);
    const second = ask({ hash: "hash-2" });
    expect(await idempotency.claim(second, alive)).toMatchObject({ kind: "new", id });
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toEqual({ kind: "running" });
    expect(await idempotency.store(id, first.requestId, keptCall("late"))).toBe(false);
    clock.advance(day - 1);
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toEqual({ kind: "running" });
  });

  test("the answer in storage lasts as long as its key", async () => {
    const stores = { ...(await testStores()), S3_BUCKET: `idempotency-${randomBase62(16).toLowerCase()}` };
    const s3 = connectS3(loadConfig({ ...stores }));
    onTestFinished(() => s3.destroy());
    await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
    const clock = createManualClock(Date.now());
    const { idempotency, files, ask, decide } = await startIdempotency(clock, stores);
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall(random(1_060_000)));
    await decide(first.requestId, 600n);
    // Storage tells the age of an object in whole seconds.
    clock.advance(day - 1_000);
    expect(await files.expireBodies()).toBe(0);
    expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered" });
    clock.advance(60_000);
    expect(await files.expireBodies()).toBe(1);
  });

  test("MongoDB removes what is over", async () => {
    const { stores, ask, idempotency } = await startIdempotency();
    await taken(idempotency, ask());
    const indexes = await indexesOf(stores.MONGODB_URI);
    expect(indexes).toContainEqual(expect.objectContaining({ key: { expiresAt: 1 }, expireAfterSeconds: 0 }));
  });
});

test("with storage away a large answer is not kept, so nothing is charged for it; a small one is", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { idempotency } = await openIdempotency(stores);
  const ask = { account: "acct_1", key: "key-1", hash: "hash-1", requestId: newRequestId(), instance: "api_1" };
  const id = await taken(idempotency, ask);
  await s3.stop();
  const large = idempotency.store(id, ask.requestId, keptCall(random(1_060_000)));
  await expect(large).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  expect(await idempotency.stored(id, ask.requestId)).toBeUndefined();
  expect(await idempotency.store(id, ask.requestId, keptCall("x".repeat(5_000_000)))).toBe(true);
});

test("processes that start at once make the collection once", async () => {
  const { stores } = await startIdempotency();
  await expect(Promise.all(times(4, () => openIdempotency(stores)))).resolves.toHaveLength(4);
});
