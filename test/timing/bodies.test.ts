import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { collectGarbage } from "../support/collect-garbage.ts";
import { migrateDatabase } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { startAnotherApi } from "../support/service.ts";
import { asking, localModel, providerModel, startWithProvider } from "../support/service-setup.ts";
import { bearer, headOf, patient, piece, stall } from "../support/stalled-bodies.ts";
import { curl } from "../support/uploads-callers.ts";
import { drawing, images, startPaid } from "../support/x402-setup.ts";

const mebi = 1024 * 1024;
const chat = "/v1/chat/completions";

const buffered = () => process.memoryUsage().arrayBuffers;

/** Bytes in use after a garbage collection. */
const held = () => {
  collectGarbage();
  return buffered();
};

/** The same with strings. */
const used = () => {
  collectGarbage();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
};

/** The growth in used bytes after the work, while the stalled requests continue. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = held();
  await work();
  return held() - before;
}

const budget = 128 * mebi;
const env = { BODY_BUDGET_BYTES: String(budget) };

test.each([
  ["declared", { "content-length": 24 * mebi }, 200],
  ["in chunks", { "transfer-encoding": "chunked" }, 200],
  ["as far as 128 KB", { "content-length": 128 * 1024 }, 500],
])(
  "callers without a key who stall with 24 MB, %s, stay within the budget and hold up no other call",
  async (_, how, callers) => {
    const { service } = await startPaid({ ...env, X402_REQUESTS_PER_MINUTE: "10000" });
    const customer = await service.account("1");
    const chunked = "transfer-encoding" in how;
    const bytes = chunked ? 24 * mebi : how["content-length"] - piece.length;
    const grown = await growth(async () => {
      for (let at = 0; at < callers; at += 50)
        await Promise.all(Array.from({ length: 50 }, () => stall(service, headOf(images, how), bytes, chunked)));
      expect((await customer.post(images, drawing())).status).toBe(200);
      // Apart from an eighth of the budget, an owner gets half of the remainder, for the text and its parsed form.
      expect((await customer.post(chat, asking(localModel, "x".repeat(24 * mebi)))).status).not.toBe(503);
    });
    expect(grown).toBeLessThan(budget);
  },
);

test("a key whose bodies stall stays within the budget, while another is served", async () => {
  const { service } = await startWithProvider(env, undefined, patient);
  const [hog, customer] = [await service.account("1"), await service.account("100")];
  const head = headOf(chat, { ...bearer(hog.key), "content-length": 24 * mebi });
  const grown = await growth(async () => {
    for (let at = 0; at < 100; at += 20)
      await Promise.all(Array.from({ length: 20 }, () => stall(service, head, 24 * mebi - piece.length, false)));
    expect((await customer.post(chat, asking(providerModel, "x".repeat(5 * mebi)))).status).toBe(200);
  });
  expect(grown).toBeLessThan(budget);
});

test("inline batches of 24 MB, many at once, take little more than the budget, and those that do not fit are 503", async () => {
  const stores = await testStores();
  await migrateDatabase(stores.MONGODB_URI);
  // Without a worker, which would read the files.
  const service = await startAnotherApi(stores, { env: { BODY_BUDGET_BYTES: String(200 * mebi) }, clock: patient });
  const customers = await Promise.all(Array.from({ length: 6 }, () => service.account("1")));
  const line = {
    custom_id: "1",
    body: { ...asking(localModel), messages: [{ role: "user", content: "x".repeat(24 * mebi) }] },
  };
  const batch = { endpoint: chat, completion_window: "24h", requests: [line] };
  const file = join(await mkdtemp(join(tmpdir(), "batch-")), "body.json");
  onTestFinished(() => rm(dirname(file), { recursive: true }));
  await writeFile(file, JSON.stringify(batch));
  // Another process sends, so that only the service's memory counts.
  const post = async ({ key }: { readonly key: string }) =>
    (await curl({ headers: bearer(key) }, "--data-binary", `@${file}`, `${service.baseUrl}/v1/batches`)).status;
  const [before, statuses] = [used(), new Map<number, number>()];
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, used() - before);
  }, 100);
  try {
    for (const status of await Promise.all([...customers, ...customers.slice(0, 2)].map(post)))
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
  } finally {
    clearInterval(sampling);
  }
  expect(new Set(statuses.keys())).toEqual(new Set([200, 503]));
  // Four bodies fit at most. Each may have a line in addition that is being written.
  expect(most).toBeLessThan((200 + 4 * 24) * mebi);
  // All of it is free again.
  for (const customer of customers) expect(await post(customer)).toBe(200);
});
