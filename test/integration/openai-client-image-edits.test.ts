import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import type OpenAI from "openai";
import { toFile } from "openai";
import { request } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import { imageModel, images, paid, pngOf, pngSize, providerImages, uploaded } from "../support/generation-setup.ts";
import { edits, endpoints, mediaCatalog, onlyCost, send, variations } from "../support/media-endpoints.ts";
import { dataAddress } from "../support/media-files.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { type Customer, eventually } from "../support/service.ts";
import { expectUntouched, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const bucket = bucketOfFile();
const running = serviceOfFile({ S3_BUCKET: bucket.name, CATALOG_FILE: mediaCatalog() });

/** No image of any call remains, whether the call succeeded or was refused. */
let uploads = 0;
afterEach(async () => {
  await eventually(async () => (await bucket.count("uploads/")) === uploads);
});

const ownUpload = async (customer: Customer, file: Buffer<ArrayBuffer>) => {
  uploads++;
  return uploaded(running.service, customer, file);
};

const costOf = (customer: Customer, response: Response, endpoint = edits) =>
  onlyCost(running.service, customer, response, endpoint);

const source = pngOf(30, 20);
const file = (bytes: Buffer = source, name = "image.png") => toFile(bytes, name);
const cent = 10_000_000n;
const perInput = 2_000_000n;
type EditParams = OpenAI.ImageEditParamsNonStreaming;

describe("with the official client", () => {
  test("an edit with a mask: images in base64, in their size; each image made and given has its price", async () => {
    const customer = await running.service.account("1");
    const { data, response } = await customer.openai.images
      .edit({
        model: imageModel,
        image: await file(),
        mask: await file(pngOf(30, 20)),
        prompt: "at night",
        n: 2,
        size: "96x64" as "256x256",
        input_fidelity: "high",
        user: "u-1",
      })
      .withResponse();
    expect(data.data).toHaveLength(2);
    // OpenAI's own GPT image models have these defaults.
    expect(pngSize(Buffer.from(data.data?.[0]?.b64_json ?? "", "base64"))).toBe("96x64");
    expect(data.data?.[0]?.url).toBeUndefined();
    expect(data.data?.[0]?.revised_prompt).toMatch(/at night.*PNG image of 30 x 20 pixels/);
    expect(response.headers.get("x-ignored-params")).toBe("input_fidelity, user");
    expect(await costOf(customer, response)).toBe(2n * cent + 2n * perInput);
    const list = await fetch(`${running.service.baseUrl}/v1/uploads`, {
      headers: { authorization: `Bearer ${customer.key}` },
    });
    expect(await list.json()).toMatchObject({ data: [] });
  });

  test("several images, as base64, at the price of the elite tier", async () => {
    const customer = await running.service.account("1", { tier: "elite" });
    const image = await Promise.all([7, 8, 9].map((width) => file(pngOf(width, 5))));
    const body: EditParams = { model: imageModel, image, prompt: "at night", response_format: "b64_json" };
    const { data, response } = await customer.openai.images.edit(body).withResponse();
    expect(pngSize(Buffer.from(data.data?.[0]?.b64_json ?? "", "base64"))).toBe("512x512");
    expect(data.data?.[0]?.revised_prompt).toMatch(/of 7 x 5 .* of 8 x 5 .* of 9 x 5 /);
    expect(await costOf(customer, response)).toBe(((cent + 3n * perInput) * 85n) / 100n);
  });

  test("the same input makes the same image; another image, mask or prompt another one", async () => {
    const { openai } = await running.service.account("1");
    const made = async (fields: Partial<EditParams>) => {
      const given = { model: imageModel, image: await file(), prompt: "at night", size: "64x64" as "256x256" };
      const { data } = await openai.images.edit({ ...given, response_format: "b64_json", ...fields });
      return data?.[0]?.b64_json;
    };
    const first = await made({});
    expect(await made({})).toBe(first);
    const others = [{ prompt: "by day" }, { image: await file(pngOf(31, 20)) }, { mask: await file(pngOf(30, 20)) }];
    const all = [first, ...(await Promise.all(others.map(made)))];
    expect(new Set(all).size).toBe(4);
  });

  test("variations: as many as asked for, without a prompt", async () => {
    const customer = await running.service.account("1");
    const { data, response } = await customer.openai.images
      .createVariation({ model: imageModel, image: await file(), n: 3, size: "256x256", response_format: "b64_json" })
      .withResponse();
    const made = data.data?.map(({ b64_json }) => b64_json ?? "") ?? [];
    expect(made.map((each) => pngSize(Buffer.from(each, "base64")))).toEqual(["256x256", "256x256", "256x256"]);
    expect(new Set(made).size).toBe(3);
    expect(await costOf(customer, response, variations)).toBe(3n * cent + perInput);
  });

  test("a provider gets the form that its own clients send, and its count of tokens comes back", async () => {
    const customer = await running.service.account("1");
    const [one, two, mask] = [randomBytes(100_000), pngOf(8, 5), pngOf(7, 5)];
    const first = Buffer.concat([pngOf(7, 5), one]);
    const { data, response } = await customer.openai.images
      .edit({
        model: providerImages,
        image: [await file(first), await toFile(two, "second.webp", { type: "image/webp" })],
        mask: await file(mask),
        prompt: "Grüße",
        n: 2,
        quality: "low",
        size: "1536x1024",
        background: "opaque",
        output_format: "webp",
        output_compression: 50,
        input_fidelity: "low",
        user: "u-1",
        stream: false,
      })
      .withResponse();
    const image = { b64_json: mockPng.toString("base64") };
    expect(data.data).toMatchObject([image, image]);
    expect(data.usage).toMatchObject({ input_tokens: 8, output_tokens: 544 });
    expect(response.headers.get("x-ignored-params")).toBe("input_fidelity, user");
    expect(await costOf(customer, response)).toBe(2n * 6_000_000n + 3n * 12_288_000n);
    const [sent] = running.provider.requests;
    expect([running.provider.requests.length, sent?.path]).toEqual([1, "/v1/images/edits"]);
    expect(sent?.form?.map(({ name, type, bytes }) => `${name}: ${type ?? bytes.toString()}`).toSorted()).toEqual([
      "background: opaque",
      "image[]: image/png",
      "image[]: image/png",
      "mask: image/png",
      "model: gpt-image-2",
      "n: 2",
      "output_compression: 50",
      "output_format: webp",
      "prompt: Grüße",
      "quality: low",
      "size: 1536x1024",
    ]);
    const files = sent?.form?.flatMap(({ type, bytes }) => (type ? [bytes] : [])) ?? [];
    expect(files.map((bytes) => [first, two, mask].findIndex((each) => each.equals(bytes)))).toEqual([0, 1, 2]);
  });
});

describe("as JSON", () => {
  const inline = dataAddress("image/png", source);

  test("data URLs in OpenAI's shape, and uploads by id, make what the form makes", async () => {
    const customer = await running.service.account("1");
    const id = await ownUpload(customer, source);
    const fields = { model: imageModel, prompt: "at night", size: "64x64", response_format: "b64_json" };
    const made = async (body: object) =>
      (await paid(running.service, customer, edits, { ...fields, ...body })).answer.data[0]?.b64_json;
    const { data } = await customer.openai.images.edit({
      ...(fields as EditParams),
      image: [await file(), await file()],
      mask: await file(),
    });
    const expected = data?.[0]?.b64_json;
    const mask = { image_url: inline };
    expect(await made({ images: [{ image_url: inline }, { file_id: id }], mask })).toBe(expected);
    expect(await made({ image: [id, { image_url: inline }], mask: id })).toBe(expected);
    expect(await made({ image: [inline, { image_url: id }], mask: { file_id: id } })).toBe(expected);
    const one = await paid(running.service, customer, edits, { ...fields, images: [{ image_url: inline }] });
    expect(one.costNanoUsd).toBe(cent + perInput);
    // Send the same job through its other route.
    const there = await paid(running.service, customer, images, { ...fields, image: [id, id], mask: id });
    expect(there.answer.data[0]?.b64_json).toBe(expected);
    expect(there.costNanoUsd).toBe(cent + 3n * perInput);
  });

  test("another account's upload is not found", async () => {
    const [owner, other] = [await running.service.account("1"), await running.service.account("1")];
    const id = await ownUpload(owner, source);
    expect(
      await refusalOf(await send(running.service, other, endpoints["image edits in JSON"], { image: [inline, id] })),
    ).toMatchObject({ status: 404 });
  });
});

describe("a form", () => {
  test("sixteen images reach a provider, however they are named and declared", async () => {
    const customer = await running.service.account("1");
    const fields = {
      model: providerImages,
      size: undefined,
      quality: "low",
      image: Array(8).fill(new Blob([pngOf(3, 2)], { type: "image/png" })),
      "image[]": Array(8).fill(new Blob([pngOf(3, 2)], { type: "text/plain" })),
    };
    const response = await send(running.service, customer, endpoints["image edits in a form"], fields);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    expect(running.provider.requests[0]?.form?.filter(({ name }) => name === "image[]")).toHaveLength(16);
    expect(await costOf(customer, response)).toBe(6_000_000n + 16n * 12_288_000n);
  });

  const boundary = "B";
  const part = (head: string, content: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`),
      Buffer.from(content),
    ]);
  const whole = Buffer.concat([
    part('name="model"', `${imageModel}\r\n`),
    part('name="prompt"', "x\r\n"),
    part('name="image"; filename="a.png"', pngOf(3, 2)),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  const form = { "content-type": `multipart/form-data; boundary=${boundary}` };

  test.each<readonly [what: string, headers: Record<string, string>, body: Buffer, status: number]>([
    ["cut off in its image", form, whole.subarray(0, whole.length - 30), 400],
    ["cut off before its image", form, whole.subarray(0, 60), 400],
    ["without a boundary", { "content-type": "multipart/form-data" }, whole, 400],
    ["declared as JSON", { "content-type": "application/json" }, whole, 400],
    ["declared as text", { "content-type": "text/plain" }, whole, 400],
    ["compressed", { ...form, "content-encoding": "gzip" }, gzipSync(whole), 415],
  ])("%s is refused", async (_, headers, body, status) => {
    const customer = await running.service.account("1");
    const sent = { method: "POST", headers: { authorization: `Bearer ${customer.key}`, ...headers }, body } as const;
    const answer = await request(running.service.baseUrl + edits, sent);
    expect([answer.statusCode, await answer.body.json()]).toMatchObject([
      status,
      { error: { code: expect.any(String) as string } },
    ]);
    await expectUntouched(running.service, customer, "1.00");
  });

  test("without a key it is 401, before its body is read", async () => {
    for (const path of [edits, variations]) {
      const { promise: read, resolve } = Promise.withResolvers<void>();
      const body = Readable.from(
        (async function* () {
          yield whole.subarray(0, 10);
          await read;
        })(),
      );
      const answer = await request(running.service.baseUrl + path, { method: "POST", headers: form, body });
      resolve();
      expect([answer.statusCode, await answer.body.json()]).toMatchObject([
        401,
        { error: { code: "invalid_api_key" } },
      ]);
    }
  });
});
