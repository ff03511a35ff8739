import { expect, test } from "vitest";
import { readLargest, readSlowly, storeLargest, storeResults } from "../support/batch-files-setup.ts";
import { collectGarbage } from "../support/collect-garbage.ts";
import { mebi } from "../support/uploads-files.ts";
import { uploadServiceOfFile } from "../support/uploads-setup.ts";

// How much memory is free depends on when the garbage collector runs.
const there = uploadServiceOfFile();

/** The most that the buffers of this process, which runs the service, grow during the work. */
async function growth(work: (sample: () => void) => Promise<unknown>): Promise<number> {
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const grown = () => process.memoryUsage().arrayBuffers - before;
  let most = 0;
  const sample = () => {
    if (grown() <= most) return;
    collectGarbage();
    most = Math.max(most, grown());
  };
  const sampling = setInterval(sample, 500);
  await work(sample).finally(() => clearInterval(sampling));
  return most;
}

test("200 MB go to storage and back through little memory", async () => {
  const customer = await there.customer();
  let id = "";
  const storing = await growth(async () => {
    id = await storeLargest(there, customer);
  });
  expect(storing).toBeLessThan(64 * mebi);
  expect(await growth(() => readLargest(there, customer, id))).toBeLessThan(64 * mebi);
  await customer.openai.files.delete(id);
});

test("60 MB of results go to a reader of 1 MB a second through little memory", async () => {
  const customer = await there.customer();
  const results = await storeResults(there, customer);
  expect(await growth((sample) => readSlowly(there, customer, results, sample))).toBeLessThan(32 * mebi);
  expect((await fetch(results.url, { method: "DELETE", headers: customer.headers })).status).toBe(200);
});
