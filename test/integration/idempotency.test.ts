import { randomBytes } from "node:crypto";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import mongoose from "mongoose";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Claim } from "../../shared/idempotency/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId, randomBase62 } from "../../shared/platform/ids.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { alive, claimNew, dead, openIdempotency, startIdempotency, storedCall } from "../support/idempotency-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";

/** Text that compresses to about this many bytes. */
const random = (bytes: number) => randomBytes(bytes).toString("base64");

async function indexesOf(uri: string): Promise<unknown[]> {
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    return await connection.collection("idempotency").indexes();
  } finally {
    await connection.close();
  }
}

const newOnes = (claims: readonly Claim[]) => claims.filter(({ kind }) => kind === "new");

describe("a key", () => {
  test("is claimed by the first request, and the same request again finds it running", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    const owners: unknown[] = [];
    const claim = await idempotency.claim(ask(), async (owner) => {
      owners.push(owner);
      return true;
    });
    expect(claim).toMatchObject({ kind: "running" });
    expect(owners).toEqual([{ requestId: first.requestId, instance: "api_1", pool: "image" }]);
  });

  test.each([0, 256, 10_000])("of %i characters is refused, naming the header", async (length) => {
    const { idempotency, ask } = await startIdempotency();
    await expect(idempotency.claim(ask({ key: "k".repeat(length) }), dead)).rejects.toMatchObject({
      status: 400,
      code: "invalid_value",
      param: "idempotency-key",
    });
  });

  test("of 1 and of 255 characters is accepted, and each is distinct", async () => {
    const { idempotency, ask } = await startIdempotency();
    const keys = ["k", "K", " k", "k".repeat(255), `${"k".repeat(254)}l`, "ключ", '","', "\\"];
    const claims = await Promise.all(keys.map((key) => idempotency.claim(ask({ key }), alive)));
    expect(newOnes(claims)).toHaveLength(keys.length);
  });

  test("belongs to its account, however account and key concatenate", async () => {
    const { idempotency, ask } = await startIdempotency();
    const pairs = [
      ["a", "b"],
      ["b", "a"],
      ["ab", ""],
      ["a", 'b","c'],
      ['a","b', "c"],
    ];
    const claims = await Promise.all(
      pairs.map(([account = "", key]) => idempotency.claim(ask({ account, key: `${key}.` }), alive)),
    );
    expect(newOnes(claims)).toHaveLength(pairs.length);
  });

  test("has the answer that version 1.0.0 stored under it", async () => {
    const { idempotency, ask, charge, store, account, mongo } = await startIdempotency();
    const first = ask();
    const id = await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    const calls = mongo.db.collection("detachedCalls");
    const call = await calls.findOneAndDelete({ account, _id: first.requestId as never });
    await mongo.db.collection("idempotency").updateOne({ _id: id as never }, { $set: { answer: call?.["answer"] } });
    await charge(first.requestId, 600n);
    const again = await idempotency.claim(ask(), alive);
    expect(again).toMatchObject({ kind: "answered", answer: { text: storedCall().text, costNanoUsd: 600n } });
  });

  test("with another body is a conflict, while the call runs and after it was answered", async () => {
    const { idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    const conflict = { status: 409, code: "conflict", shouldRetry: false };
    await expect(idempotency.claim(ask({ hash: "hash-2" }), alive)).rejects.toMatchObject(conflict);
    await store(first.requestId, storedCall());
    await charge(first.requestId, 600n);
    await expect(idempotency.claim(ask({ hash: "hash-2" }), alive)).rejects.toMatchObject(conflict);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "answered" });
  });

  test("of a request that ended before anything was captured is free", async () => {
    const { idempotency, ask } = await startIdempotency();
    const first = ask();
    const id = await claimNew(idempotency, first);
    await idempotency.release(id, "req_other");
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "running" });
    await idempotency.release(id, first.requestId);
    await idempotency.release(id, first.requestId);
    // Another body gets the same result.
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toEqual({ kind: "new", id });
  });
});

describe("an answer", () => {
  test("counts once the call has succeeded, with the cost of the ledger", async () => {
    const { idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    expect(await store(first.requestId, storedCall("the answer", { costNanoUsd: 5_000n }))).toBe(true);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "running" });
    // The hold was 1,000, so the charge is at most that much.
    await charge(first.requestId, 5_000n);
    expect(await idempotency.claim(ask(), alive)).toEqual({
      kind: "answered",
      requestId: first.requestId,
      hash: "hash-1",
      answer: { text: "the answer", costNanoUsd: 1_000n },
    });
  });

  test("that cost nothing is returned", async () => {
    const { idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    await store(first.requestId, storedCall("{}", { costNanoUsd: 0n }));
    await charge(first.requestId, 0n);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ answer: { text: "{}", costNanoUsd: 0n } });
  });

  test("of a call that failed in the end is dropped, and the key is free", async () => {
    const { idempotency, ask, charge, store, stored } = await startIdempotency();
    const [first, second] = [ask(), ask({ hash: "a corrected body" })];
    const id = await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    await charge(first.requestId, 0n, "failed");
    expect(await idempotency.claim(second, alive)).toEqual({ kind: "new", id, before: first.requestId });
    expect(await stored(second.requestId)).toBeUndefined();
    expect(await idempotency.claim(ask({ hash: second.hash }), alive)).toMatchObject({ kind: "running" });
  });

  test.each([
    ["empty", "", false],
    ["small", "x", false],
    ["of few characters and many bytes", "€".repeat(30_000), false],
    ["of five megabytes that compress to less than one", '"b64_json":"'.padEnd(5_000_000, "A€\u0000\\"), false],
    ["of just less than 1 MB compressed", random(1_040_000), false],
    ["of more than 1 MB compressed", random(1_060_000), true],
  ])("%s comes back as it was", async (_, text, isLarge) => {
    const { idempotency, files, ask, charge, store, stored } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    const usage = { image: 3, minute: 0.083333, character: 2 ** 33, input_image: 0 };
    const headers = { "x-ignored-params": "top_k, metadata" };
    const call = storedCall(text, { usage, estimated: true, costNanoUsd: 2n ** 53n + 1n, headers });
    await store(first.requestId, call);
    const inStorage = files.getAnswer(first.requestId).then(
      () => true,
      () => false,
    );
    expect(await inStorage).toBe(isLarge);
    expect(await stored(first.requestId)).toEqual(call);
    await charge(first.requestId, 600n);
    const again = await idempotency.claim(ask(), alive);
    expect(again).toMatchObject({ kind: "answered", answer: { costNanoUsd: 600n, headers } });
    expect(again.kind === "answered" && "text" in again.answer && again.answer.text === text).toBe(true);
  });

  test("that is stored again, as after a lost connection, is the same answer", async () => {
    const { idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    expect(await store(first.requestId, storedCall())).toBe(true);
    expect(await store(first.requestId, storedCall())).toBe(true);
    await charge(first.requestId, 600n);
    expect(await idempotency.claim(ask(), alive)).toMatchObject({ kind: "answered" });
  });

  test("is found and stored only by its own request", async () => {
    const { idempotency, ask, store, stored } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    expect(await stored(newRequestId())).toBeUndefined();
    expect(await store(first.requestId, storedCall("another"))).toBe(false);
    expect(await stored(first.requestId)).toEqual(storedCall());
  });

  test("that is an upload counts at once, with a hash that was known only after the claim", async () => {
    const { idempotency, ask, stored } = await startIdempotency();
    const first = ask({ hash: undefined, pool: undefined });
    const id = await claimNew(idempotency, first);
    expect(await idempotency.claim(ask({ hash: undefined }), alive)).toMatchObject({ kind: "running" });
    await idempotency.storeUpload(id, first.requestId, "upl_1", "hash-of-the-file");
    expect(await idempotency.claim(ask({ hash: undefined }), alive)).toEqual({
      kind: "answered",
      requestId: first.requestId,
      hash: "hash-of-the-file",
      answer: { upload: "upl_1" },
    });
    // The key belongs to an upload.
    await expect(idempotency.claim(ask({ hash: "hash-1" }), alive)).rejects.toMatchObject({ code: "conflict" });
    expect(await stored(first.requestId)).toBeUndefined();
  });
});

describe("24 hours", () => {
  test("the answer is valid until then; after them the key is new, for any body", async () => {
    const clock = createManualClock(Date.now());
    const { idempotency, ask, charge, store } = await startIdempotency(clock);
    const first = ask();
    const id = await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    await charge(first.requestId, 600n);
    clock.advance(dayMs - 1);
    expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered" });
    await expect(idempotency.claim(ask({ hash: "hash-2" }), dead)).rejects.toMatchObject({ code: "conflict" });
    clock.advance(1);
    const second = ask({ hash: "hash-2" });
    expect(await idempotency.claim(second, alive)).toMatchObject({ kind: "new", id });
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toMatchObject({ kind: "running" });
    expect(await store(first.requestId, storedCall("late"))).toBe(false);
    clock.advance(dayMs - 1);
    expect(await idempotency.claim(ask({ hash: "hash-2" }), alive)).toMatchObject({ kind: "running" });
  });

  test("the answer in storage lasts as long as its key", async () => {
    const stores = { ...(await testStores()), S3_BUCKET: `idempotency-${randomBase62(16).toLowerCase()}` };
    const s3 = connectS3(loadConfig({ ...stores }));
    onTestFinished(() => s3.destroy());
    await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
    const begunAt = Date.now();
    const clock = createManualClock(begunAt);
    const { idempotency, files, ask, charge, store } = await startIdempotency(clock, stores);
    const first = ask();
    await claimNew(idempotency, first);
    await store(first.requestId, storedCall(random(1_060_000)));
    await charge(first.requestId, 600n);
    // S3 reports the age of an object in whole seconds.
    clock.advance(dayMs - 1_000);
    expect(await files.expireBodies()).toBe(0);
    expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered" });
    // The time of storage has passed meanwhile.
    clock.advance(60_000 + Date.now() - begunAt);
    expect(await files.expireBodies()).toBe(1);
  });

  test("MongoDB removes expired documents", async () => {
    const { stores, ask, idempotency } = await startIdempotency();
    await claimNew(idempotency, ask());
    const indexes = await indexesOf(stores.MONGODB_URI);
    expect(indexes).toContainEqual(expect.objectContaining({ key: { expiresAt: 1 }, expireAfterSeconds: 0 }));
  });
});

test("with storage unavailable storing a large answer fails, and storing a small one does not", async () => {
  const stores = { ...(await testStores()), S3_ENDPOINT: "http://127.0.0.1:1" };
  const { detachedCalls } = await openIdempotency(stores);
  const requestId = newRequestId();
  const large = detachedCalls.storeAnswer("acct_1", requestId, storedCall(random(1_060_000)));
  await expect(large).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  expect(await detachedCalls.answer("acct_1", requestId)).toBeUndefined();
  const small = storedCall("x".repeat(5_000_000));
  expect(await detachedCalls.storeAnswer("acct_1", requestId, small)).toEqual(small);
});
