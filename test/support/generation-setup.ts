import { deflateSync } from "node:zlib";
import { expect } from "vitest";
import { pngChunk, wav } from "./media-files.ts";
import type { Client, Customer } from "./service.ts";
import { type Entry, entryOf, nanoUsd } from "./service-setup.ts";

export const images = "/v1/images/generations";
export const media = "/v1/media/generations";
export const imageModel = "local/image";

/** A provider's model, with its price set here, so that changes of the price list do not affect the tests. */
export const providerImages = "openai/gpt-image-2";
export const imagePrices = {
  [imageModel]: { pricing: { image: "0.01", input_image: "0.002" }, elite_discount_bps: 1_500 },
  [providerImages]: {
    units: { image: { field: "n" }, input_image: { items_of: ["image", "mask"] } },
    pricing: { image: "0.211", input_image: "0.012288" },
    variants: [{ name: "low", when: { quality: ["low"] }, pricing: { image: "0.006" } }],
  },
} as const;

/** A minimal image request. */
export const drawing = (prompt = "a lighthouse", fields: object = {}) => ({
  model: imageModel,
  prompt,
  size: "16x16",
  ...fields,
});

export interface ImageAnswer {
  readonly created: number;
  readonly expires_at: number;
  readonly data: readonly {
    readonly url?: string;
    readonly b64_json?: string;
    readonly revised_prompt?: string;
    readonly expires_at: number;
  }[];
}

export interface MediaAnswer {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly expires_at: number;
  readonly output: Readonly<Record<string, unknown>>;
  readonly files: readonly {
    readonly url: string;
    readonly content_type: string;
    readonly bytes: number;
    readonly expires_at: number;
  }[];
}

/** Delivers a call. Returns its response, and its cost, on which all records must agree. */
export async function paid<Answer = ImageAnswer>(
  service: Client,
  customer: Customer,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ answer: Answer; entry: Entry; costNanoUsd: bigint; response: Response }> {
  await service.settled();
  const before = nanoUsd(await customer.available());
  const response = await customer.post(path, body, { headers });
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  await service.settled();
  const entry = await entryOf(service, response.headers.get("x-request-id"));
  const costNanoUsd = -nanoUsd(entry.amount_usd);
  expect(before - nanoUsd(await customer.available())).toBe(costNanoUsd);
  expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(costNanoUsd);
  expect(entry).toMatchObject({
    kind: "usage",
    account: customer.id,
    request: { endpoint: path, status: "succeeded", estimated: false, shortfall_usd: "0.00" },
  });
  return { answer: JSON.parse(text) as Answer, entry, costNanoUsd, response };
}

/** The charges of an account, newest first, without those of zero. */
export const charges = async (customer: Customer): Promise<readonly Entry[]> =>
  ((await customer.ledger("usage")) as unknown as readonly Entry[]).filter(({ amount_usd }) => amount_usd !== "0.00");

/** The file at an address. */
export async function fileAt(url: string): Promise<{ type: string | null; bytes: Buffer }> {
  const response = await fetch(url);
  const bytes = Buffer.from(await response.arrayBuffer());
  expect([url, response.status]).toEqual([url, 200]);
  expect(response.headers.get("content-length")).toBe(String(bytes.length));
  return { type: response.headers.get("content-type"), bytes };
}

/** The size of a valid PNG, such as `512x256`. */
export function pngSize(bytes: Buffer): string {
  expect(bytes.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  expect(bytes.subarray(-8).toString("latin1")).toBe("IEND\xaeB`\x82");
  return `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`;
}

/** A PNG of one color. */
export function pngOf(width: number, height: number): Buffer<ArrayBuffer> {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  const rows = deflateSync(Buffer.alloc((1 + width * 3) * height));
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([
    signature,
    pngChunk("IHDR", header),
    pngChunk("IDAT", rows),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A WAV of silence: 8,000 samples of 16 bits per second. */
export const wavOf = (seconds: number): Buffer<ArrayBuffer> => wav(seconds, 8_000);

/** Uploads a file and returns its id. */
export async function uploaded({ baseUrl }: Client, { key }: Customer, file: Buffer<ArrayBuffer>): Promise<string> {
  const response = await fetch(`${baseUrl}/v1/uploads`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/octet-stream" },
    body: file,
  });
  const upload = (await response.json()) as { id: string };
  expect([response.status, upload]).toEqual([200, expect.objectContaining({ status: "active" })]);
  return upload.id;
}
