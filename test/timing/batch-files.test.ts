import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { toFile } from "openai";
import { expect, test } from "vitest";
import { collectGarbage } from "../support/collect-garbage.ts";
import { insertBatches } from "../support/stored-batches.ts";
import { curl } from "../support/uploads-callers.ts";
import { diskFile, mebi } from "../support/uploads-files.ts";
import { type Uploader, uploadServiceOfFile } from "../support/uploads-setup.ts";

// How much memory is free depends on when the garbage collector runs.
const there = uploadServiceOfFile();

const path = "/v1/files";
const limitBytes = 200 * mebi;

const upload = async ({ openai }: Uploader, text: string) =>
  openai.files.create({ file: await toFile(Buffer.from(text), "requests.jsonl"), purpose: "batch" });
const ask = (customer: Uploader, rest: string) =>
  fetch(there.service.baseUrl + path + rest, { headers: customer.headers });

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
  const file = await diskFile("wav", limitBytes);
  const url = there.service.baseUrl + path;
  let id = "";
  const uploading = await growth(async () => {
    const sent = await curl(customer, "-F", `file=@${file};filename=日本.jsonl`, "-F", "purpose=batch", url);
    expect(sent).toMatchObject({ status: 200, body: { bytes: limitBytes, filename: "日本.jsonl" } });
    ({ id } = sent.body as { id: string });
  });
  expect(uploading).toBeLessThan(64 * mebi);

  const reading = await growth(async () => {
    const request = get(`${url}/${id}/content`, { headers: customer.headers });
    const [content] = (await once(request, "response")) as [IncomingMessage];
    // The reader waits while another file is stored.
    const other = await upload(customer, "x".repeat(8 * mebi));
    await customer.openai.files.delete(other.id);
    let bytes = 0;
    for await (const chunk of content) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(limitBytes);
  });
  expect(reading).toBeLessThan(64 * mebi);
  await customer.openai.files.delete(id);
});

test("60 MB of results go to a reader of 1 MB a second through little memory", async () => {
  const customer = await there.customer();
  const part = await there.files.batchFiles.putPart(customer.id, "outputs", `${"x".repeat(5 * mebi - 1)}\n`);
  const outputs = Array.from({ length: 12 }, () => part);
  const batch = { account: customer.id, kind: "anthropic", status: "completed", outputs } as const;
  const [id = ""] = await insertBatches(there.stores, [batch]);
  const url = `${there.service.baseUrl}/v1/messages/batches/${id}`;
  const reading = await growth(async (sample) => {
    const request = get(`${url}/results`, { headers: customer.headers });
    const [content] = (await once(request, "response")) as [IncomingMessage];
    let bytes = 0;
    for await (const chunk of content) {
      const second = Math.floor(bytes / mebi / 4);
      bytes += (chunk as Buffer).length;
      if (Math.floor(bytes / mebi / 4) === second) continue;
      there.advance(4_000);
      // The service reads ahead as far as it may, and serves others.
      expect(await (await ask(customer, "")).json()).toMatchObject({ data: [] });
      sample();
    }
    expect(bytes).toBe(12 * part.bytes);
  });
  expect((await fetch(url, { method: "DELETE", headers: customer.headers })).status).toBe(200);
  expect(reading).toBeLessThan(32 * mebi);
});
