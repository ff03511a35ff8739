import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import OpenAI, { toFile } from "openai";
import { request } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import {
  charges,
  imageModel,
  imagePrices,
  images,
  paid,
  pngOf,
  pngSize,
  providerImages,
  uploaded,
  wavOf,
} from "../support/generation-setup.ts";
import { dataAddress } from "../support/media-files.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  catalogWith,
  entryOf,
  expectUntouched,
  invalidValue,
  nanoUsd,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const edits = "/v1/images/edits";
const variations = "/v1/images/variations";
const kontext = "black-forest-labs/flux-1-kontext-pro";
const mebi = 1024 * 1024;

const bucket = bucketOfFile();
const running = serviceOfFile({ S3_BUCKET: bucket.name, CATALOG_FILE: catalogWith({}, imagePrices), FAL_KEY: "key" });

/** No image of any call remains, whether the call succeeded or was refused. */
let uploads = 0;
afterEach(async () => {
  await eventually(async () => (await bucket.count("uploads/")) === uploads);
});

const ownUpload = async (customer: Customer, file: Buffer<ArrayBuffer>) => {
  uploads++;
  return uploaded(running.service, customer, file);
};

/** The cost of the account's only call, on which all records must agree. */
async function costOf(customer: Customer, response: Response, endpoint = edits): Promise<bigint> {
  await running.service.settled();
  const entry = await entryOf(running.service, response.headers.get("x-request-id"));
  expect(entry.request).toMatchObject({ endpoint, status: "succeeded" });
  expect(response.headers.get("x-xm-cost-usd")).toBe(entry.amount_usd.replace("-", ""));
  expect(response.headers.get("x-ratelimit-limit-requests")).toMatch(/^\d+$/);
  expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe(-nanoUsd(entry.amount_usd));
  return -nanoUsd(entry.amount_usd);
}

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

  test("one image is sent on as one, and a refusal by the provider names its field and costs nothing", async () => {
    const customer = await running.service.account("1");
    running.provider.respond(mockError(400, "Invalid image file.", { param: "image" }));
    const failed = customer.openai.images.edit({ model: providerImages, image: await file(), prompt: "at night" });
    await expect(failed).rejects.toMatchObject({ status: 400, param: "image", code: "invalid_value" });
    expect(running.provider.requests[0]?.form?.map(({ name }) => name)).toContain("image");
    await expectUntouched(running.service, customer, "1.00");
  });

  test("under an Idempotency-Key the same files are answered again, and other files are a conflict", async () => {
    const customer = await running.service.account("1");
    const ask = async (bytes: Buffer) =>
      customer.openai.images
        .edit(
          { model: imageModel, image: [await file(), await file(bytes)], prompt: "at night" },
          { headers: { "idempotency-key": "once" } },
        )
        .withResponse();
    const first = await ask(pngOf(3, 4));
    const again = await ask(pngOf(3, 4));
    expect(again.data).toEqual(first.data);
    expect(again.response.headers.get("idempotent-replayed")).toBe("true");
    expect(await costOf(customer, first.response)).toBe(cent + 2n * perInput);
    expect(again.response.headers.get("x-xm-cost-usd")).toBe("0.014");
    await expect(ask(pngOf(3, 5))).rejects.toMatchObject({ status: 409, code: "conflict" });
  });

  test("one nano-USD too little: 402, nothing is held", async () => {
    const customer = await running.service.account("0.013999999");
    const asked = customer.openai.images.edit({
      model: imageModel,
      image: await file(),
      mask: await file(),
      prompt: "at night",
    });
    await expect(asked).rejects.toMatchObject({ status: 402, code: "insufficient_balance" });
    await expectUntouched(running.service, customer, "0.013999999");
  });

  test("nothing of a caller who disconnects remains", async () => {
    const customer = await running.service.account("1");
    const leaving = new AbortController();
    const asked = customer.openai.images.edit(
      { model: imageModel, image: [await file(), await file()], prompt: "slow:500" },
      { signal: leaving.signal, maxRetries: 0 },
    );
    await eventually(async () => (await customer.available()) !== "1.00");
    expect(await bucket.count("uploads/")).toBe(uploads + 2);
    leaving.abort();
    await expect(asked).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    await running.service.settled();
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
  });

  test("a variation, and the same request again under its key", async () => {
    const customer = await running.service.account("1");
    const body = { model: imageModel, image: inline, n: 2 };
    const headers = { "idempotency-key": "again" };
    const { answer, costNanoUsd } = await paid(running.service, customer, variations, body, headers);
    expect([answer.data.length, costNanoUsd]).toEqual([2, 2n * cent + perInput]);
    const again = await customer.post(variations, body, { headers });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await again.json()).toEqual(answer);
    const other = await customer.post(
      variations,
      { ...body, image: dataAddress("image/png", pngOf(3, 3)) },
      { headers },
    );
    expect((await refusalOf(other)).status).toBe(409);
  });

  const edit = { model: imageModel, prompt: "at night", image: inline };
  type Refused = [what: string, path: string, body: object, param: string | null, message?: RegExp];
  test.each<Refused>([
    ["no image", edits, { image: undefined }, "image", /one of `image` and `images`/],
    ["both names of images", edits, { images: [inline] }, "image"],
    ["17 images", edits, { image: Array.from({ length: 17 }, () => inline) }, "image", /16/],
    ["more images than the model takes", edits, { image: Array.from({ length: 5 }, () => inline) }, "image", /4/],
    ["a link, which no model here takes", edits, { image: "https://example.com/a.png" }, "image", /ids of uploads/],
    ["a file of OpenAI's store", edits, { images: [{ file_id: "file-abc" }], image: undefined }, "image[0]"],
    ["a reference with two addresses", edits, { mask: { image_url: inline, file_id: "upl_1" } }, "mask", /needs/],
    ["an empty reference", edits, { image: [inline, {}] }, "image[1]", /needs/],
    ["a data URL that is no base64", edits, { image: [inline, "data:image/png;base64,%%"] }, "image[1]", /base64/],
    ["a data URL without data", edits, { mask: "data:image/png;base64," }, "mask", /base64/],
    [
      "text as an image",
      edits,
      { mask: { image_url: dataAddress("image/png", Buffer.from("text")) } },
      "mask.image_url",
    ],
    ["a recording as an image", edits, { image: dataAddress("image/png", wavOf(1)) }, "image", /not an image/],
    ["a stream", edits, { stream: true }, "stream", /streamed/],
    ["no model", edits, { model: undefined }, "model"],
    ["no prompt", edits, { prompt: undefined }, "prompt"],
    ["two images of a variation", variations, { image: [inline, inline] }, "image"],
    ["no model of a variation, which OpenAI's clients may omit", variations, { model: undefined }, "model"],
  ])("%s: 400 naming the field, and no charge", async (_, path, body, param, message = /./) => {
    const customer = await running.service.account("1");
    expect(await refusalOf(await customer.post(path, { ...edit, ...body }))).toEqual(
      refusal(invalidValue(param, message)),
    );
    await expectUntouched(running.service, customer, "1.00");
    expect(await charges(customer)).toEqual([]);
  });

  test.each([
    ["nested without end", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["without end", `{${Array.from({ length: 200_000 }, (_, at) => `"f${at}":1`).join()}}`],
  ])("parameters %s are refused", async (_, more) => {
    const customer = await running.service.account("1");
    for (const path of [edits, variations]) {
      const body = `{"model":"${imageModel}","prompt":"x","image":"${inline}","more":${more}}`;
      expect((await refusalOf(await customer.post(path, body))).status).toBe(400);
    }
    await expectUntouched(running.service, customer, "1.00");
  });

  test.each([
    [edits, "local/chat", "/v1/chat/completions"],
    [variations, kontext, images],
    [variations, providerImages, images],
  ])("%s refuses %s, which is a model of %s", async (path, model, endpoint) => {
    const customer = await running.service.account("1");
    expect(await refusalOf(await customer.post(path, { ...edit, model }))).toEqual(
      refusal({
        status: 400,
        type: "invalid_request_error",
        code: "model_not_supported",
        param: "model",
        message: new RegExp(endpoint),
      }),
    );
  });

  test("another account's upload is not found", async () => {
    const [owner, other] = [await running.service.account("1"), await running.service.account("1")];
    const id = await ownUpload(owner, source);
    expect(await refusalOf(await other.post(edits, { ...edit, image: [inline, id] }))).toMatchObject({ status: 404 });
  });
});

describe("a form", () => {
  type Part = readonly [name: string, value: string | Blob];

  function post({ key }: Pick<Customer, "key">, parts: readonly Part[], path = edits): Promise<Response> {
    const form = new FormData();
    for (const [name, value] of parts)
      if (typeof value === "string") form.append(name, value);
      else form.append(name, value, "a.png");
    const headers = { authorization: `Bearer ${key}` };
    return fetch(running.service.baseUrl + path, { method: "POST", headers, body: form });
  }

  const blob = (bytes: Buffer<ArrayBuffer> | string = pngOf(3, 2)) => new Blob([bytes], { type: "image/png" });
  const image: Part = ["image", blob()];
  const fields: readonly Part[] = [
    ["model", imageModel],
    ["prompt", "at night"],
  ];
  const many = (count: number, part: Part = image): readonly Part[] => Array.from({ length: count }, () => part);
  const tooLarge: Refusal = { ...invalidValue("image", /52428800/), status: 413, code: "request_too_large" };

  type RefusedForm = [what: string, parts: readonly Part[], expected: Refusal, path?: string];
  test.each<RefusedForm>([
    ["no image", fields, invalidValue("image", /no file/)],
    ["only a mask", [...fields, ["mask", blob()]], invalidValue("image", /no file/)],
    [
      "two masks",
      [...fields, image, ["mask", blob()], ["mask", blob()]],
      invalidValue("mask", /one file in the field 'mask'/),
    ],
    ["17 images", [...fields, ...many(17, ["image[]", blob()])], invalidValue("image", /16/)],
    ["more images than the model takes", [...fields, ...many(5, ["image[]", blob()])], invalidValue("image", /4/)],
    [
      "an image that is text",
      [...fields, ["image[]", blob()], ["image[]", blob("text")]],
      invalidValue("image[1]", /not an/),
    ],
    ["a recording", [...fields, ["image", blob(wavOf(1))]], invalidValue("image", /not an image/)],
    ["an empty image", [...fields, ["image[]", blob()], ["image[]", blob("")]], invalidValue("image[1]", /empty/)],
    ["an empty mask", [...fields, image, ["mask", blob("")]], invalidValue("mask", /empty/)],
    ["an image without a file name", [...fields, ["image", "upl_1"]], invalidValue("image", /file name/)],
    [
      "a file in another field",
      [...fields, image, ["photo", blob()]],
      invalidValue("image", /16 files in the field 'image'/),
    ],
    ["an image over 50 MB", [...fields, ["image", blob(Buffer.alloc(50 * mebi + 1))]], tooLarge],
    ["a field of 10 MB", [...fields, image, ["user", "x".repeat(10 * mebi)]], invalidValue("user", /limit/)],
    ["too many fields", [...fields, image, ...many(40, ["x", "1"])], invalidValue(null, /too many/)],
    ["no model", [["prompt", "x"], image], invalidValue("model")],
    ["two models", [["model", "local/nothing"], ...fields, image], invalidValue("model", /twice/)],
    ["no prompt", [["model", imageModel], image], invalidValue("prompt")],
    ["n that is no number", [...fields, image, ["n", "two"]], invalidValue("n", /number/)],
    ["n of 5", [...fields, image, ["n", "5"]], invalidValue("n", /4/)],
    ["a stream", [...fields, image, ["stream", "true"]], invalidValue("stream", /streamed/)],
    ["a size that the model does not have", [...fields, image, ["size", "9x9"]], invalidValue("size")],
    [
      "a parameter that the provider's model does not have",
      [["model", providerImages], ["prompt", "x"], image, ["partial_images", "2"]],
      invalidValue("partial_images"),
    ],
    ["two images of a variation", [["model", imageModel], ...many(2)], invalidValue("image", /one file/), variations],
    ["a mask of a variation", [["model", imageModel], image, ["mask", blob()]], invalidValue("image"), variations],
    ["a failure of the model", [["model", imageModel], ["prompt", "error:400"], image], invalidValue("prompt")],
  ])("with %s is refused naming the field, and no charge", async (_, parts, expected, path) => {
    const customer = await running.service.account("1");
    expect(await refusalOf(await post(customer, parts, path))).toEqual(refusal(expected));
    await expectUntouched(running.service, customer, "1.00");
    expect(await charges(customer)).toEqual([]);
    expect(running.provider.requests).toEqual([]);
  });

  test("is answered again under its key when nothing of the balance remains", async () => {
    const customer = await running.service.account("0.012");
    const headers = { "Idempotency-Key": "k1" };
    const body = { model: imageModel, prompt: "x", image: await file(), response_format: "url" } as const;
    const edited = async () => (await customer.openai.images.edit(body, { headers })).data?.[0]?.url;
    const url = await edited();
    await running.service.settled();
    expect(await customer.available()).toBe("0.00");
    expect(url).toBeDefined();
    expect(await edited()).toBe(url);
    await expect(customer.openai.images.edit({ ...body, prompt: "y" })).rejects.toMatchObject({ status: 402 });
    expect(await charges(customer)).toHaveLength(1);
  });

  test("sixteen images reach a provider, however they are named and declared", async () => {
    const customer = await running.service.account("1");
    const parts = [...many(8), ...many(8, ["image[]", new Blob([pngOf(3, 2)], { type: "text/plain" })])];
    const response = await post(customer, [["model", providerImages], ["prompt", "x"], ["quality", "low"], ...parts]);
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
