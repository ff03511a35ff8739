import { expect, test } from "vitest";
import { testStores } from "../support/servers.ts";
import { ready, spawnApi, spawnWorker } from "../support/service.ts";

interface Media {
  readonly files: readonly { readonly url: string; readonly bytes: number; readonly content_type: string }[];
}

test("a video is served whole and in ranges by any instance, also after a restart", async () => {
  const stores = await testStores();
  const [worker, api] = await Promise.all([spawnWorker(stores), spawnApi(stores)]);
  await ready(api.client);
  const customer = await api.client.account("1.00");
  const response = await customer.post("/v1/media/generations", {
    model: "local/video",
    input: { prompt: "The sea", duration: 2 },
  });
  expect([response.status, response.headers.get("x-xm-cost-usd")]).toEqual([200, "0.02"]);
  const { files } = (await response.json()) as Media;
  const [file] = files as [Media["files"][0]];
  expect(file.content_type).toBe("video/mp4");
  const whole = Buffer.from(await (await fetch(file.url)).arrayBuffer());
  expect(whole).toHaveLength(file.bytes);
  expect(whole.toString("latin1", 4, 8)).toBe("ftyp");

  for (const each of [worker, api]) each.kill("SIGTERM");
  expect(await Promise.all([worker.exited, api.exited])).toEqual([0, 0]);
  const { client: next } = await spawnApi(stores);
  const part = await fetch(`${next.baseUrl}${new URL(file.url).pathname}`, { headers: { range: "bytes=100-299" } });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 100-299/${file.bytes}`]);
  expect(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(100, 300))).toBe(true);
});
