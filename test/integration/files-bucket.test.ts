import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { prepareBucket } from "../../shared/files/bucket.ts";
import { createArchiveObjects } from "../../shared/money/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { testStores } from "../support/servers.ts";

/** Mocks the bucket settings of S3. The embedded server has no lifecycle rules. */
async function startBucketSettings() {
  const settings = new Map<string, string>();
  const writes: string[] = [];
  const refusal: { code?: string } = {};
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const setting = new URL(req.url ?? "", "http://s3").searchParams.has("lifecycle") ? "Lifecycle" : "CORS";
    if (req.method === "PUT") {
      settings.set(setting, await text(req));
      writes.push(setting);
      res.end();
      return;
    }
    const { code } = refusal;
    if (code !== undefined) return void res.writeHead(403).end(`<Error><Code>${code}</Code></Error>`);
    const stored = settings.get(setting);
    const missing = `<Error><Code>NoSuch${setting}Configuration</Code></Error>`;
    res.writeHead(stored ? 200 : 404, { "content-type": "application/xml" }).end(stored ?? missing);
  }
  const server = createServer((req, res) => void answer(req, res));
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = loadConfig({ ...(await testStores()), S3_ENDPOINT: endpoint });
  return { config, settings, writes, refusal };
}

test("a worker sets lifecycle rules for every prefix of files, once, and none that deletes archives", async () => {
  const { config, settings, writes, refusal } = await startBucketSettings();
  const deps = { s3: connectS3(config), bucket: config.S3_BUCKET, log: createLogger("test", "silent") };
  await prepareBucket(deps);
  const rules = settings.get("Lifecycle") ?? "";
  expect([...rules.matchAll(/<Prefix>([^<]*)<\/Prefix>/g)].map(([, prefix]) => prefix)).toEqual([
    "uploads/",
    "files/",
    "bodies/",
    "answers/",
    "batch/",
  ]);
  expect(rules.match(/<Expiration><Days>2<\/Days><\/Expiration>/g)).toHaveLength(4);
  expect(rules).toMatch(/<Days>35<\/Days><\/Expiration>.*<Prefix>batch\/|<Prefix>batch\/.*<Days>35<\/Days>/);
  await prepareBucket(deps);
  expect(writes.toSorted()).toEqual(["CORS", "Lifecycle"]);

  const objects = createArchiveObjects(config);
  await objects.assertNotExpired();
  const all = "<Rule><ID>tidy</ID><Status>Enabled</Status><Expiration><Days>90</Days></Expiration></Rule>";
  settings.set("Lifecycle", `<LifecycleConfiguration>${all}</LifecycleConfiguration>`);
  await expect(objects.assertNotExpired()).rejects.toThrow("rule tidy");
  for (const [code, isKnown] of [
    ["AccessDenied", false],
    ["SlowDown", false],
    ["NotImplemented", true],
  ] as const) {
    refusal.code = code;
    const asserted = await objects.assertNotExpired().then(
      () => true,
      (error: Error) => /rules of the bucket .* cannot be read/.test(error.message) && false,
    );
    expect([code, asserted]).toEqual([code, isKnown]);
  }
});
