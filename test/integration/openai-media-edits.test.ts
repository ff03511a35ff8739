import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const cat = { prompt: "a cat" };
const png = (id: string, content: Buffer | number, param = "image") => ({ id, param, mime: "image/png", content });

test("images and mask are sent as an exact form", async () => {
  const { mock, provider, stored, call } = await startMedia();
  const [first, second, mask] = [randomBytes(70_000), Buffer.from("\r\n--form\r\n"), randomBytes(10)];
  const uploads = uploadsOf([
    png("upl_1", first, "image[0]"),
    { ...png("upl_2", second, "image[1]"), mime: "image/jpeg" },
    png("upl_3", mask, "mask"),
  ]);
  const input = {
    prompt: "Grüße\r\n--",
    image: ["upl_1", "upl_2"],
    mask: "upl_3",
    n: 2,
    size: "1024x1024",
    x: { y: true },
  };
  const { usage } = await provider.generate(call("images", { ...input, response_format: "url" }, { uploads }));
  const [request] = mock.requests;
  expect(request).toMatchObject({ method: "POST", path: "/v1/images/edits" });
  expect(request?.headers["transfer-encoding"]).toBeUndefined();
  expect(Number(request?.headers["content-length"])).toBeGreaterThan(70_000);
  const text = (name: string, value: string) => ({ name, bytes: Buffer.from(value) });
  const file = (name: string, filename: string, type: string, bytes: Buffer) => ({ name, filename, type, bytes });
  expect(request?.form).toEqual([
    text("prompt", input.prompt),
    file("image[]", "file-1.png", "image/png", first),
    file("image[]", "file-2.jpg", "image/jpeg", second),
    file("mask", "file-3.png", "image/png", mask),
    text("n", "2"),
    text("size", "1024x1024"),
    text("x[y]", "true"),
    text("model", "provider-model"),
  ]);
  expect([usage, stored.length]).toEqual([{ image: 2 }, 2]);
});

test("one image is not a list", async () => {
  const { mock, provider, call } = await startMedia();
  const uploads = uploadsOf([png("upl_1", mockPng)]);
  await provider.generate(call("images", { ...cat, image: "upl_1" }, { uploads }));
  expect(mock.requests[0]?.form).toContainEqual({
    name: "image",
    filename: "file-1.png",
    type: "image/png",
    bytes: mockPng,
  });
});

test("names and types are escaped", async () => {
  const { mock, provider, call } = await startMedia();
  const uploads = uploadsOf([{ ...png("upl_1", mockPng), mime: 'image/x-odd"\r\nx: y; a=b' }]);
  const name = 'a"; filename="b.png"\r\n\r\nc';
  await provider.generate(call("images", { ...cat, [name]: "text", image: "upl_1" }, { uploads }));
  const [, odd, image] = mock.requests[0]?.form ?? [];
  expect(odd).toEqual({ name: "a%22; filename=%22b.png%22%0D%0A%0D%0Ac", bytes: Buffer.from("text") });
  expect(image).toEqual({ name: "image", filename: "file-2.odd", type: "image/x-odd", bytes: mockPng });
});

test.each([
  ["an image over 50 MB", [png("upl_1", 50 * 1024 * 1024 + 1)], { image: "upl_1" }, "image"],
  [
    "a mask over 4 MB",
    [png("upl_1", mockPng), png("upl_2", 4 * 1024 * 1024 + 1, "mask")],
    { image: "upl_1", mask: "upl_2" },
    "mask",
  ],
  [
    "over 128 MB together",
    [1, 2, 3].map((i) => png(`upl_${i}`, 45 * 1024 * 1024, `image[${i}]`)),
    { image: ["upl_1", "upl_2", "upl_3"] },
    "image[3]",
  ],
  ["an upload where no file can be", [png("upl_1", mockPng, "deep.image")], { deep: { image: "upl_1" } }, "deep.image"],
])("%s is refused before anything is sent", async (_, files, input, param) => {
  const { mock, provider, call } = await startMedia();
  const uploads = uploadsOf(files);
  expect(await errorOf(provider.generate(call("images", { ...cat, ...input }, { uploads })))).toMatchObject({
    param,
  });
  expect(mock.requests).toEqual([]);
});

test("files in the provider's own store are refused", async () => {
  const { mock, provider, call } = await startMedia();
  const input = { ...cat, images: [{ file_id: "file-1" }] };
  expect(await errorOf(provider.generate(call("images", input)))).toMatchObject({
    kind: "refused",
    param: "images[0].file_id",
  });
  expect(mock.requests).toEqual([]);
});
