import { expect, onTestFinished, test } from "vitest";
import type { StoredBatch } from "../../shared/batches/index.ts";
import { chatLine, createBatch, endOf, openBatches, resultsOf } from "../support/batches-setup.ts";
import { createDeath } from "../support/deadly-wire.ts";
import { temporaryJson } from "../support/end-of-file.ts";
import { mockError } from "../support/mock-openai.ts";
import { startMockOpenaiBatches } from "../support/mock-openai-batches.ts";
import { type Stores, testStores } from "../support/servers.ts";
import { eventually, ready, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";

const catalog = {
  elite_discount_bps: 0,
  upstreams: { openai: { provider: "openai", base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" } },
  models: [
    {
      id: "mock/chat",
      name: "Mock",
      owned_by: "mock",
      type: "text",
      released: "2026-01-01",
      context_length: 200_000,
      max_output_tokens: 1_000,
      pricing: { input: "1.00", output: "2.00" },
      upstreams: [{ upstream: "openai", model: "mock-1", batch_discount_bps: 5_000 }],
    },
  ],
};
const [batchCount, lineCount] = [6, 50];
const fates = Array.from({ length: 6 }, (_, n) => ({ at: 3 + 4 * n, executed: n % 2 === 1 }));
const unusual = [mockError(400, "No."), mockError(500, "Sorry."), "missing"] as const;
const apiFates = fates.slice(0, 3);
/** Each death leaves a batch waiting for half a minute: for the end of a claim, or to submit it again. */
const patienceMs = 200_000;

test("APIs and workers die while a provider has their lines: each line has one result, and costs what the ledger says", async () => {
  const stores = await testStores({ oneServer: true });
  const openai = await startMockOpenaiBatches();
  onTestFinished(() => openai.close());
  const env = {
    CATALOG_FILE: temporaryJson("catalog", catalog),
    OPENAI_BASE_URL: openai.url,
    OPENAI_API_KEY: "sk-batches",
    PROVIDER_BATCH_POLL_SECONDS: "1",
    ...shortTimeouts,
  };
  const { client } = await spawnApi(stores, env);
  const customer = await client.account("10.00");
  const { data } = await client.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
  const opened = await openBatches(stores, { env });

  async function startDoomed<P extends { kill(signal: NodeJS.Signals): void }>(
    fate: (typeof fates)[number],
    spawn: (own: Stores) => Promise<P>,
  ): Promise<P> {
    const death = createDeath(fate);
    const [REDIS_URL, MONGODB_URI] = await Promise.all([death.wire(stores.REDIS_URL), death.wire(stores.MONGODB_URI)]);
    const doomed = await spawn({ ...stores, REDIS_URL, MONGODB_URI });
    death.arm(
      () => doomed.kill("SIGKILL"),
      (message) => message.includes(customer.id),
    );
    return doomed;
  }
  const workers = await Promise.all(fates.map((fate) => startDoomed(fate, (own) => spawnWorker(own, env))));
  await Promise.all(apiFates.map((fate) => startDoomed(fate, (own) => spawnApi(own, env))));
  await ready(client);

  const lines = Array.from({ length: lineCount }, (_, n) => chatLine(n, `Line ${n}.`, { model: "mock/chat" }));
  const of = { account: customer.id, keyId: data[0]?.id ?? "" };
  const batches: StoredBatch[] = [];
  for (let n = 0; n < batchCount; n++) batches.push(await createBatch(opened, of, lines));
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const provider = eventually(() => {
    for (const { id, status } of openai.batches.all()) {
      if (status !== "validating") continue;
      openai.batches.start(id);
      const ids = openai.batches.lines(id).map(({ custom_id }) => custom_id);
      openai.batches.complete(
        id,
        Object.fromEntries(unusual.flatMap((outcome, n) => (ids[n] ? [[ids[n], outcome]] : []))),
      );
    }
    return isOver;
  }, 300_000);
  await Promise.race([
    Promise.all(workers.map(({ exited }) => exited)),
    Promise.all(batches.map((batch) => endOf(opened, batch, patienceMs))),
  ]);
  await spawnWorker(stores, env);
  const ends = await Promise.all(batches.map((batch) => endOf(opened, batch, patienceMs)));
  isOver = true;
  await provider;

  let chargedNanoUsd = 0n;
  for (const batch of ends) {
    const [outputs, failures] = await Promise.all([resultsOf(opened, batch), resultsOf(opened, batch, "failures")]);
    const ids = [...outputs, ...failures].map(({ custom_id }) => custom_id);
    expect(ids.toSorted()).toEqual(lines.map(({ custom_id }) => custom_id).toSorted());
    expect(batch).toMatchObject({ status: "completed", counts: { succeeded: lineCount - failures.length } });
    chargedNanoUsd += batch.costNanoUsd;
  }
  expect(await client.settled()).toMatchObject({ difference_usd: "0.00", open_holds: 0 });
  const entries = await opened.mongo.db.collection("ledger").find({ account: customer.id, kind: "usage" }).toArray();
  expect(entries.reduce((sum, { amount }) => sum - BigInt(amount as bigint), 0n)).toBe(chargedNanoUsd);
  expect(await opened.mongo.db.collection("batchLines").countDocuments({})).toBe(0);
  const open = { status: { $ne: "ended" } };
  expect(await opened.mongo.db.collection("providerBatches").countDocuments(open)).toBe(0);
  // Some died, and most lines were still run by the provider's batches.
  expect(openai.requests.filter(({ path }) => path === "/v1/chat/completions").length).toBeLessThan(
    (batchCount * lineCount) / 2,
  );
});
