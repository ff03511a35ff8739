import { expect, onTestFinished, test } from "vitest";
import { createFiles } from "../../shared/files/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import {
  filesConfig,
  mib,
  pngOf,
  priceOf,
  refused,
  sent,
  startArchive,
  upload,
  wavOf,
} from "../support/files-setup.ts";
import { brokenWire, type Command, type Fate } from "../support/money-proxy.ts";
import { eventually } from "../support/service.ts";

/** A process whose proxy to MongoDB drops the commands that a test selects; its money has a separate connection. */
async function startFar(fate: (command: Command) => Fate) {
  const archive = await startArchive();
  const { stores, money, clock } = archive;
  const log = createLogger("test", "silent");
  const wire = await brokenWire(stores.MONGODB_URI, fate);
  const mongo = await connectMongo(`${wire}&retryWrites=false`, clock, log);
  onTestFinished(() => mongo.close());
  const config = { ...stores, ...filesConfig };
  return { ...archive, far: createFiles({ config, mongo, money, clock, log }) };
}

/** Applies only to the first matching command. */
function once(fate: Fate, fits: (command: Command) => boolean): (command: Command) => Fate {
  let done = false;
  return (command) => {
    if (done || !fits(command)) return "pass";
    done = true;
    return fate;
  };
}

const activates = (command: Command) => {
  const { $set } = (command["update"] ?? {}) as { $set?: { status?: string } };
  return command["findAndModify"] === "uploads" && $set?.status === "active";
};

test("an upload whose record cannot be written is 503, and its hold is released", async () => {
  const archive = await startFar(once("lose the request", (command) => command["insert"] === "uploads"));
  const begun = archive.far.uploads.begin({ ...archive.ask(), maxBytes: mib });
  await expect(begun).rejects.toThrow(refused("no_capacity"));
  await eventually(async () => (await archive.money.account(archive.account))?.openHolds === 0);
  await archive.expectNothing();
});

test("an upload whose insert succeeded without an answer leaves nothing", async () => {
  const archive = await startFar(once("lose the answer", (command) => command["insert"] === "uploads"));
  const begun = archive.far.uploads.begin({ ...archive.ask(), maxBytes: mib });
  await expect(begun).rejects.toThrow(refused("no_capacity"));
  await eventually(async () => (await archive.records()).length === 0);
  await archive.expectNothing();
});

test("an upload that failed while MongoDB was unavailable is ended without a wait for its expiry", async () => {
  let lost = 0;
  const archive = await startFar(({ insert, findAndModify }) =>
    (insert === "uploads" || findAndModify === "uploads") && ++lost <= 3 ? "lose the request" : "pass",
  );
  const begun = archive.far.uploads.begin({ ...archive.ask(), maxBytes: mib });
  await expect(begun).rejects.toThrow(refused("no_capacity"));
  await archive.far.settled();
  await eventually(async () => (await archive.money.account(archive.account))?.openHolds === 0);
  expect(lost).toBeGreaterThan(3);
  await archive.expectNothing();
});

for (const fate of ["lose the answer", "lose the request"] as const)
  test(`an upload becomes active, once charged, when MongoDB was to ${fate}`, async () => {
    const archive = await startFar(once(fate, activates));
    const raw = await upload({ ...archive, files: archive.far }, pngOf());
    expect(await archive.files.uploads.find(archive.account, raw.id)).toMatchObject({ status: "active" });
    await archive.expectMoney(priceOf(pngOf().length));
  });

test("a multipart upload whose record cannot be updated leaves no parts", async () => {
  const updates = (command: Command) => command["findAndModify"] === "uploads";
  const archive = await startFar(once("lose the request", updates));
  const started = archive.far.uploads.start({ ...archive.ask(), bytes: 1_000, mime: "image/png" });
  await expect(started).rejects.toThrow(refused("no_capacity"));
  await archive.expectNoTrace();
});

test("expiry finishes a deletion that crashed after its first write", async () => {
  let dead = false;
  const archive = await startFar((command) => {
    if (dead) return "lose the request";
    dead = command["findAndModify"] === "uploads";
    return "pass";
  });
  const { id } = await upload(archive, pngOf());
  await archive.far.uploads.delete(archive.account, id);
  expect(await archive.objects()).toEqual([`uploads/${id}`]);
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 1 });
  await archive.expectNothing(priceOf(pngOf().length));
});

test("while MongoDB does not answer, reads are 503 with Retry-After", async () => {
  const archive = await startFar(({ find, aggregate }) => (find || aggregate ? "lose the request" : "pass"));
  const { id } = await sent(archive, wavOf(1_000));
  const { uploads, generated } = archive.far;
  const asked = [
    uploads.find(archive.account, id),
    uploads.complete(archive.account, id),
    uploads.delete(archive.account, id),
    uploads.list(archive.account, { limit: 1 }),
    uploads.check(archive.account, [{ id, param: "input" }]),
    generated.find("file_none"),
  ];
  for (const each of await Promise.allSettled(asked))
    expect(each).toMatchObject({ status: "rejected", reason: { code: "no_capacity", retryAfterSeconds: 1 } });
});

test("a charge that cannot be captured leaves no active upload", async () => {
  const archive = await startArchive();
  const money = { ...archive.money, capture: () => Promise.reject(new Error("unavailable for too long")) };
  const files = archive.another({ money });
  await expect(upload({ ...archive, files }, pngOf())).rejects.toThrow(refused("no_capacity"));
  await archive.expectNothing();
  const { id } = await sent(archive, wavOf(2_000));
  await expect(files.uploads.complete(archive.account, id)).rejects.toThrow(refused("no_capacity"));
  expect(await archive.files.uploads.find(archive.account, id)).toMatchObject({ status: "pending" });
  expect(await archive.files.uploads.complete(archive.account, id)).toMatchObject({ status: "active" });
  await archive.expectMoney(priceOf(2_000));
});
