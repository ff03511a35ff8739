import { expect, test } from "vitest";
import { scrape } from "../support/metrics.ts";
import { testStores } from "../support/servers.ts";
import { ready, spawnApi, spawnWorker } from "../support/service.ts";
import { catalogWith } from "../support/service-setup.ts";

interface Readiness {
  readonly status: string;
  readonly catalog: { readonly hash: string; readonly workers: Record<string, number>; readonly differs: boolean };
}

test("while a worker has other prices than the API, readiness and a metric say so, and no longer once it is replaced", async () => {
  const stores = await testStores();
  const cheaper = catalogWith({}, { "openai/gpt-4.1-mini": { pricing: { input: "0.01", output: "0.02" } } });
  const [api, same, other] = await Promise.all([
    spawnApi(stores),
    spawnWorker(stores),
    spawnWorker(stores, { CATALOG_FILE: cheaper }),
  ]);
  await ready(api.client);
  const readiness = async () => {
    const response = await fetch(`${api.client.baseUrl}/readyz`);
    return { code: response.status, ...((await response.json()) as Readiness) };
  };
  const hashOf = async (process: { metrics: string }) =>
    (await scrape(process.metrics)).labels("inference_catalog_info")[0]?.["hash"] as string;
  const [ours, theirs] = [await hashOf(api), await hashOf(other)];
  expect([await hashOf(same), theirs === ours]).toEqual([ours, false]);

  const both = { [ours]: 1, [theirs]: 1 };
  await expect.poll(readiness).toMatchObject({
    code: 200,
    status: "degraded",
    catalog: { hash: ours, workers: both, differs: true },
  });
  expect((await scrape(api.metrics)).value("inference_catalog_differs")).toBe(1);

  // Both have the API's catalog.
  await spawnWorker(stores);
  other.kill("SIGTERM");
  await expect
    .poll(readiness)
    .toMatchObject({ code: 200, status: "ready", catalog: { workers: { [ours]: 2 }, differs: false } });
  expect((await scrape(api.metrics)).value("inference_catalog_differs")).toBe(0);

  // The catalog is logged when it changes, not at every reading.
  const isSaid = ({ catalog }: Record<string, unknown>) => catalog === ours;
  await api.line((line) => isSaid(line) && line["msg"] === "all workers have this catalog again");
  expect(api.log.filter(isSaid)).toHaveLength(2);
});
