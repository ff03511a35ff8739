import { expect, onTestFinished, test } from "vitest";
import { createFiles } from "../../shared/files/index.ts";
import type { Money } from "../../shared/money/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import {
  type Archive,
  filesConfig,
  minutesMs,
  outcomeOf,
  partSize,
  priceOf,
  refused,
  sent,
  startArchive,
  upload,
  wavOf,
} from "../support/files-setup.ts";
import { brokenWire, type Fate } from "../support/money-proxy.ts";
import { times } from "../support/money-setup.ts";

test("two concurrent completions, in two processes, are one charge and one answer", async () => {
  const archive = await startArchive();
  const body = wavOf(partSize + 70_000);
  const { id } = await sent(archive, body);
  const processes = times(4, () => archive.another());
  const answers = await Promise.all(processes.map((files) => files.uploads.complete(archive.account, id)));
  for (const answer of answers) expect({ ...answer, url: "" }).toEqual({ ...answers[0], url: "" });
  expect(answers[0]).toMatchObject({ status: "active", bytes: body.length });
  expect(await archive.objects()).toEqual([`uploads/${id}`]);
  await archive.expectMoney(priceOf(body.length));
  await archive.files.uploads.delete(archive.account, id);
  await archive.expectNothing(priceOf(body.length));
});

test("two concurrent completions of a file of another type leave nothing", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, Buffer.alloc(100_000, "<html>"));
  const complete = () => archive.another().uploads.complete(archive.account, id);
  for (const each of await Promise.allSettled([complete(), complete()]))
    expect(each).toMatchObject({ status: "rejected", reason: { name: "ServiceError" } });
  await archive.expectNothing();
});

test("a completion concurrent with a deletion is charged only if it came first, and leaves no object", async () => {
  const archive = await startArchive();
  const body = wavOf(30_000);
  let paid = 0n;
  for (let round = 0; round < 12; round++) {
    const { id, requestId } = await sent(archive, body);
    const [completed, deleted] = await Promise.allSettled([
      archive.files.uploads.complete(archive.account, id),
      passTurns(round * 3).then(() => archive.another().uploads.delete(archive.account, id)),
    ]);
    // A completion that fails alone would end the upload as well, but none does here.
    expect(deleted).toMatchObject({ status: "fulfilled" });
    if (completed.status === "fulfilled") paid += priceOf(body.length);
    expect(["done", "upload_deleted"]).toContain(outcomeOf(completed));
    const entry = await archive.money.findEntry(requestId);
    expect(entry?.kind).toBe("storage");
    await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_deleted"));
    await archive.expectNothing(paid);
  }
});

const endings = {
  "its owner deletes": [
    "upload_deleted",
    ({ files, account }: Archive, id: string) => files.uploads.delete(account, id),
  ],
  expires: ["upload_expired", ({ clock, files }: Archive) => (clock.later(73 * minutesMs), files.expire())],
} as const;

test.for(Object.entries(endings))(
  "an upload that %s between charge and record is given back",
  async ([, [code, end]]) => {
    const archive = await startArchive();
    const { id } = await sent(archive, wavOf(30_000));
    const late: Money = {
      ...archive.money,
      async capture(call) {
        const captured = await archive.money.capture(call);
        await end(archive, id);
        return captured;
      },
    };
    const completed = archive.another({ money: late }).uploads.complete(archive.account, id);
    await expect(completed).rejects.toThrow(refused(code));
    await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused(code));
    expect(await archive.money.ledger(archive.account, { limit: 1 })).toMatchObject([{ kind: "refund" }]);
    await archive.expectNothing();
  },
);

test("a late completion refunds nothing of an upload that was active and then deleted", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const body = wavOf(30_000);
  const { id } = await sent(archive, body);
  const late: Money = {
    ...archive.money,
    async capture(call) {
      await files.uploads.complete(account, id);
      await files.uploads.delete(account, id);
      return archive.money.capture(call);
    },
  };
  const completed = archive.another({ money: late }).uploads.complete(account, id);
  await expect(completed).rejects.toThrow(refused("upload_deleted"));
  await archive.expectNothing(priceOf(body.length));
});

test("an upload that becomes active during its expiry stays active", async () => {
  const archive = await startArchive();
  const { stores, money, clock } = archive;
  const body = wavOf(2_000);
  const { id } = await sent(archive, body);
  const wire = await brokenWire(stores.MONGODB_URI, async (command): Promise<Fate> => {
    if (command["update"] === "uploads") await archive.files.uploads.complete(archive.account, id);
    return "pass";
  });
  const ahead = { ...clock, now: () => clock.now() + 73 * minutesMs };
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(wire, ahead, log);
  onTestFinished(() => mongo.close());
  const config = { ...stores, ...filesConfig };
  expect(await createFiles({ config, mongo, money, clock: ahead, log }).expire()).toEqual({ expired: 0, removed: 0 });
  expect(await archive.files.uploads.find(archive.account, id)).toMatchObject({ status: "active" });
  expect(await archive.objects()).toEqual([`uploads/${id}`]);
  await archive.expectMoney(priceOf(body.length));
});

test("expiry concurrent with a completion: active and charged, or expired and free", async () => {
  const archive = await startArchive();
  const body = wavOf(30_000);
  let paid = 0n;
  for (let round = 0; round < 8; round++) {
    const { id } = await sent(archive, body);
    // Another process, whose clock is ahead and which considers the upload overdue.
    const ahead = { ...archive.clock, now: () => archive.clock.now() + 73 * minutesMs };
    const [completed] = await Promise.allSettled([
      archive.files.uploads.complete(archive.account, id),
      passTurns(round * 4).then(() => archive.another({ clock: ahead }).expire()),
    ]);
    expect(["done", "upload_expired"]).toContain(outcomeOf(completed));
    const active = completed.status === "fulfilled";
    expect(await archive.objects()).toEqual(active ? [`uploads/${id}`] : []);
    if (active) {
      paid += priceOf(body.length);
      await archive.files.uploads.delete(archive.account, id);
    }
    await archive.expectNothing(paid);
  }
});

test("one of two concurrent deletions is 410", async () => {
  const archive = await startArchive();
  const body = wavOf(1_000);
  const { id } = await upload(archive, body);
  const deleted = await Promise.allSettled(times(3, () => archive.another().uploads.delete(archive.account, id)));
  expect(deleted.filter((each) => outcomeOf(each) === "done")).toHaveLength(1);
  expect(deleted.filter((each) => outcomeOf(each) === "upload_deleted")).toHaveLength(2);
  await archive.expectNothing(priceOf(body.length));
});

test("expiry in several processes at once counts and refunds each upload once", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const body = wavOf(2_000);
  const pending = await Promise.all(times(20, () => sent(archive, body)));
  const active = await Promise.all(times(20, () => upload(archive, body)));
  await Promise.all(pending.slice(0, 5).map(({ id }) => files.uploads.complete(account, id)));
  await Promise.all(active.slice(0, 5).map(({ id }) => files.uploads.delete(account, id)));
  archive.clock.later(25 * 60 * minutesMs);
  const rounds = await Promise.all(times(5, () => archive.another().expire()));
  expect(rounds.reduce((sum, { expired }) => sum + expired, 0)).toBe(35);
  expect(rounds.reduce((sum, { removed }) => sum + removed, 0)).toBe(35);
  await archive.expectNothing(25n * priceOf(body.length));
  expect(await files.expire()).toEqual({ expired: 0, removed: 0 });
});

/** Yields to other work this many times, to shift the point of collision in each round. */
async function passTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
