import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, ready, spawnApi, spawnWorker } from "../support/service.ts";

const run = promisify(execFile);
const day = 86_400;

async function startProcesses(env: Record<string, string> = {}) {
  const stores = await testStores();
  const [worker, api] = await Promise.all([spawnWorker(stores, env), spawnApi(stores, env)]);
  await ready(api.client);
  return { stores, worker, api, client: api.client };
}

const isPng = (bytes: Buffer) => bytes.toString("latin1", 0, 8) === "\x89PNG\r\n\x1a\n";
const sizeOf = (png: Buffer) => `${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`;
const fetched = async (url: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, { headers });
  return { response, status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
};

interface Media {
  readonly files: readonly { readonly url: string; readonly bytes: number; readonly content_type: string }[];
}

test("the official client gets images as URLs and as base64", async () => {
  const { client } = await startProcesses();
  const customer = await client.account("1.00");
  const { data: byUrl, response } = await customer.openai.images
    .generate({ model: "local/image", prompt: "A lighthouse", n: 2, size: "256x256" })
    .withResponse();
  expect(response.headers.get("x-xm-cost-usd")).toBe("0.02");
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  expect(byUrl).toMatchObject({ expires_at: byUrl.created + day });
  expect(byUrl.data).toHaveLength(2);
  for (const { url = "" } of byUrl.data ?? []) {
    const { status, bytes, response: file } = await fetched(url);
    expect(status).toBe(200);
    expect(file.headers.get("content-type")).toBe("image/png");
    expect(isPng(bytes) && sizeOf(bytes)).toBe("256x256");
  }
  const asText = await customer.openai.images.generate({
    model: "local/image",
    prompt: "A lighthouse",
    size: "512x512",
    response_format: "b64_json",
  });
  const png = Buffer.from(asText.data?.[0]?.b64_json ?? "", "base64");
  expect(isPng(png) && sizeOf(png)).toBe("512x512");
  await client.settled();
  expect(await customer.available()).toBe("0.97");
});

test("a video is served whole and in ranges by any instance, also after a restart", async () => {
  const { stores, worker, api, client } = await startProcesses();
  const customer = await client.account("1.00");
  const response = await customer.post("/v1/media/generations", {
    model: "local/video",
    input: { prompt: "The sea", duration: 2 },
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-xm-cost-usd")).toBe("0.02");
  const { files } = (await response.json()) as Media;
  const [file] = files as [Media["files"][0]];
  expect(file.content_type).toBe("video/mp4");
  const whole = await fetched(file.url);
  expect(whole.bytes).toHaveLength(file.bytes);
  expect(whole.bytes.toString("latin1", 4, 8)).toBe("ftyp");

  for (const each of [worker, api]) each.kill("SIGTERM");
  expect(await Promise.all([worker.exited, api.exited])).toEqual([0, 0]);
  const { client: next } = await spawnApi(stores);
  const url = `${next.baseUrl}${new URL(file.url).pathname}`;
  const part = await fetched(url, { range: "bytes=100-299" });
  expect(part.status).toBe(206);
  expect(part.response.headers.get("content-range")).toBe(`bytes 100-299/${file.bytes}`);
  expect(part.bytes.equals(whole.bytes.subarray(100, 300))).toBe(true);
  const tail = await fetched(url, { range: "bytes=-10" });
  expect(tail.bytes.equals(whole.bytes.subarray(-10))).toBe(true);
  const head = await fetch(url, { method: "HEAD" });
  expect(head.headers.get("content-length")).toBe(String(file.bytes));
  expect(head.headers.get("x-content-type-options")).toBe("nosniff");
  const etag = head.headers.get("etag") ?? "";
  expect((await fetched(url, { "if-none-match": etag })).status).toBe(304);
  expect((await fetched(`${url.slice(0, -1)}${url.endsWith("0") ? "1" : "0"}`)).status).toBe(404);
});

test("an image uploaded by curl, raw and as a form, is input for a chat model and an image model", async () => {
  const { client } = await startProcesses();
  const customer = await client.account("1.00");
  const made = await customer.openai.images.generate({
    model: "local/image",
    prompt: "A map",
    size: "256x256",
    response_format: "b64_json",
  });
  const folder = await mkdtemp(join(tmpdir(), "inference-e2e-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const image = join(folder, "map.png");
  await writeFile(image, Buffer.from(made.data?.[0]?.b64_json ?? "", "base64"));

  const raw = await curl(client, customer, ["--data-binary", `@${image}`, "-H", "content-type: image/png"]);
  const form = await curl(client, customer, ["-F", `file=@${image}`]);
  for (const upload of [raw, form])
    expect(upload).toMatchObject({ object: "upload", status: "active", kind: "image", mime: "image/png" });
  expect(raw.id).not.toBe(form.id);
  expect((await fetched(raw.url)).bytes).toHaveLength(raw.bytes);

  const answer = await customer.openai.chat.completions.create({
    model: "local/chat",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is it?" },
          { type: "image_url", image_url: { url: raw.id } },
        ],
      },
    ],
  });
  expect(answer.choices[0]?.message.content).toContain("a PNG image of 256 x 256 pixels");
  const edited = await customer.post("/v1/images/generations", {
    model: "local/image",
    prompt: "The same at night",
    image: form.id,
  });
  expect(edited.status).toBe(200);

  const address = `${client.baseUrl}/v1/uploads/${raw.id}`;
  const headers = { authorization: `Bearer ${customer.key}` };
  expect(await (await fetch(address, { method: "DELETE", headers })).json()).toEqual({ id: raw.id, deleted: true });
  expect((await fetched(raw.url)).status).not.toBe(200);
  await expect(
    customer.openai.chat.completions.create({
      model: "local/chat",
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: raw.id } }] }],
    }),
  ).rejects.toMatchObject({ status: 410, code: "upload_deleted" });
  await client.settled();
});

interface Upload {
  readonly id: string;
  readonly url: string;
  readonly bytes: number;
}

async function curl({ baseUrl }: Client, { key }: Customer, args: readonly string[]): Promise<Upload> {
  const { stdout } = await run("curl", ["-sS", "-H", `authorization: Bearer ${key}`, ...args, `${baseUrl}/v1/uploads`]);
  return JSON.parse(stdout) as Upload;
}
