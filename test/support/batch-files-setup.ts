import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import type OpenAI from "openai";
import { toFile } from "openai";
import { expect } from "vitest";
import { insertBatches } from "./stored-batches.ts";
import { curl } from "./uploads-callers.ts";
import { diskFile, mebi } from "./uploads-files.ts";
import type { Uploader, UploadService } from "./uploads-setup.ts";

export const path = "/v1/files";
export const limitBytes = 200 * mebi;
export const lines = '{"custom_id":"1"}\n{"custom_id":"2"}\n';

export const upload = async ({ openai }: Uploader, text = lines, more: Partial<OpenAI.FileCreateParams> = {}) =>
  openai.files.create({ file: await toFile(Buffer.from(text), "requests.jsonl"), purpose: "batch", ...more });

async function contentOf(url: string, headers: Uploader["headers"]): Promise<IncomingMessage> {
  const [content] = (await once(get(url, { headers }), "response")) as [IncomingMessage];
  return content;
}

/** Stores a file of 200 MB, and returns its id. */
export async function storeLargest({ service }: UploadService, customer: Uploader): Promise<string> {
  const file = await diskFile("wav", limitBytes);
  const form = ["-F", `file=@${file};filename=日本.jsonl`, "-F", "purpose=batch"];
  const sent = await curl(customer, ...form, service.baseUrl + path);
  expect(sent).toMatchObject({ status: 200, body: { bytes: limitBytes, filename: "日本.jsonl" } });
  return (sent.body as { id: string }).id;
}

/** Reads this much of the file of 200 MB, or all of it. The reader waits while another file is stored. */
export async function readLargest(
  { service }: UploadService,
  customer: Uploader,
  id: string,
  most = limitBytes,
): Promise<void> {
  const content = await contentOf(`${service.baseUrl}${path}/${id}/content`, customer.headers);
  expect(content.headers["content-length"]).toBe(String(limitBytes));
  const other = await upload(customer, "x".repeat(8 * mebi));
  await customer.openai.files.delete(other.id);
  let bytes = 0;
  for await (const chunk of content) {
    bytes += (chunk as Buffer).length;
    if (bytes >= most) break;
  }
  expect(bytes).toBeGreaterThanOrEqual(most);
}

/** A batch with 60 MB of results. */
export async function storeResults({ stores, service, files }: UploadService, { id: account }: Uploader) {
  const part = await files.batchFiles.putPart(account, "outputs", `${"x".repeat(5 * mebi - 1)}\n`);
  const outputs = Array.from({ length: 12 }, () => part);
  const [id = ""] = await insertBatches(stores, [{ account, kind: "anthropic", status: "completed", outputs }]);
  return { url: `${service.baseUrl}/v1/messages/batches/${id}`, bytes: 12 * part.bytes };
}

/** Reads the results at 1 MB a second, with a pause every 4 MB. */
export async function readSlowly(
  there: UploadService,
  { headers }: Uploader,
  { url, bytes }: Awaited<ReturnType<typeof storeResults>>,
  onPause = () => {},
): Promise<void> {
  let read = 0;
  for await (const chunk of await contentOf(`${url}/results`, headers)) {
    const pauses = Math.floor(read / mebi / 4);
    read += (chunk as Buffer).length;
    if (Math.floor(read / mebi / 4) === pauses) continue;
    there.advance(4_000);
    // The service reads ahead as far as it may, and serves others.
    const others = await fetch(there.service.baseUrl + path, { headers });
    expect(await others.json()).toMatchObject({ data: [] });
    onPause();
  }
  expect(read).toBe(bytes);
}
