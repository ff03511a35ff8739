import { describe, expect, test } from "vitest";
import { type MediaAnswer, paid, pngOf, uploaded, wavOf } from "../support/generation-setup.ts";
import { asking, shipped } from "../support/native-media-prices.ts";
import { expectNothing, mediaServiceOfFile, type ProviderName, posted } from "../support/native-media-setup.ts";
import { catalogWith, invalidValue, type Refusal, refusal, refusalOf } from "../support/service-setup.ts";

/** Models with permissive schemas, as an operator may write them. */
const open = (upstream: string, task: "images" | "video", required = ["prompt"]) => ({
  id: `test/${upstream}-${task}`,
  name: "Open",
  owned_by: "test",
  type: task === "images" ? "image" : "video",
  task,
  released: "2026-01-01",
  input_schema: {
    type: "object",
    required,
    properties: {
      prompt: { type: "string" },
      ...(task === "images"
        ? { n: { type: "integer", minimum: 1, maximum: 4, default: 1 } }
        : { duration: { enum: [4], default: 4 } }),
    },
  },
  units: task === "images" ? { image: { field: "n" } } : { second: { field: "duration" } },
  pricing: task === "images" ? { image: "0.04" } : { second: "0.10" },
  upstreams: [{ upstream, model: "acme/open" }],
});
const CATALOG_FILE = catalogWith(
  {},
  {},
  ["replicate", "fal", "gemini"].flatMap((upstream) => [open(upstream, "images"), open(upstream, "video")]),
);
const running = mediaServiceOfFile({ CATALOG_FILE });

const openModel = (upstream: string, task: "images" | "video") => ({ id: `test/${upstream}-${task}`, task });
const theirs = {
  replicate: "https://api.replicate.com/v1/files/theirs/download",
  fal: "https://rest.fal.ai/storage/theirs",
  queued: "https://queue.fal.run/fal-ai/veo3/requests/theirs",
  gemini: "https://generativelanguage.googleapis.com/v1beta/files/theirs",
} as const;

test.each<readonly [name: ProviderName, task: "images" | "video", fields: object, param: string]>([
  ["replicate", "images", { image: theirs.replicate }, "image"],
  ["replicate", "images", { image: theirs.replicate.toUpperCase() }, "image"],
  ["replicate", "images", { image: theirs.replicate.replace("api", "%61p%69") }, "image"],
  ["replicate", "images", { image: theirs.replicate.replace("//", "/").replace("api", "a\tpi") }, "image"],
  ["replicate", "images", { prompt: `like ${theirs.replicate}` }, "prompt"],
  ["replicate", "video", { more: [{ at: theirs.replicate }] }, "input.more[0].at"],
  ["fal", "images", { image_url: theirs.fal }, "image_url"],
  ["fal", "video", { image_url: theirs.queued }, "input.image_url"],
  ["fal", "video", { image_url: theirs.queued.replaceAll("/", "\\") }, "input.image_url"],
  ["gemini", "images", { image: theirs.gemini }, "image"],
  ["gemini", "images", { image: ["files/theirs"] }, "image"],
  ["gemini", "video", { image: theirs.gemini }, "input.image"],
  ["gemini", "video", { reference_images: [theirs.gemini] }, "input.reference_images"],
])("what is stored at %s under the operator's key cannot be used: %s (%#)", async (name, task, fields, param) => {
  const customer = await running.service.account("1");
  const { path, body } = asking(openModel(name, task), { prompt: "a fox", ...fields });
  expect(await refusalOf(await customer.post(path, body))).toEqual(refusal(invalidValue(param)));
  expect(running[name].requests).toEqual([]);
  await expectNothing(running, customer, "1.00");
});

test.each<readonly [id: string, param: string, fields: object, message: RegExp]>([
  ["black-forest-labs/flux-1-dev", "prompt", {}, /./],
  ["black-forest-labs/flux-1-dev", "n", { prompt: "x", n: 5 }, /4/],
  ["black-forest-labs/flux-1-dev", "n", { prompt: "x", n: 0 }, /./],
  ["black-forest-labs/flux-1-dev", "n", { prompt: "x", n: 1.5 }, /./],
  ["black-forest-labs/flux-1-dev", "num_outputs", { prompt: "x", num_outputs: 4 }, /./],
  ["black-forest-labs/flux-1-dev", "image", { prompt: "x", image: "https://example.com/a.png" }, /./],
  ["black-forest-labs/flux-1-dev", "disable_safety_checker", { prompt: "x", disable_safety_checker: true }, /./],
  ["ideogram/ideogram-v3", "rendering_speed", { prompt: "x", rendering_speed: "WARP" }, /./],
  ["ideogram/ideogram-v3", "num_images", { prompt: "x", num_images: 8 }, /./],
  ["black-forest-labs/flux-1-kontext-pro", "image_url", { prompt: "x" }, /./],
  ["black-forest-labs/flux-1-kontext-pro", "image_url", { prompt: "x", image_url: "https://example.com/a.png" }, /./],
  ["google/gemini-nano-banana-2.1", "size", { prompt: "x", size: "17x4" }, /./],
  ["google/gemini-nano-banana-2.1", "image", { prompt: "x", image: Array(15).fill(`upl_${"a".repeat(24)}`) }, /./],
  ["google/veo-3.1", "input.duration", { prompt: "x", duration: "60s" }, /./],
  ["google/veo-3.1", "input.duration", { prompt: "x", duration: 8 }, /./],
  ["google/veo-3.1", "input.generate_audio", { prompt: "x", generate_audio: "no" }, /./],
  ["google/veo-3.1", "input.enhance", { prompt: "x", enhance: true }, /./],
  ["google/gemini-omni-1.2-flash", "input.duration", { prompt: "x", duration: 11 }, /./],
  ["google/gemini-omni-1.2-flash", "input.prompt", { prompt: "" }, /./],
  ["elevenlabs/eleven-multilingual-v2", "input.text", { text: "x".repeat(5_001) }, /5000/],
  ["elevenlabs/eleven-multilingual-v2", "input.speed", { text: "x", speed: 9 }, /./],
  ["elevenlabs/eleven-music", "input.music_length_ms", { prompt: "x", music_length_ms: 31_000 }, /./],
])("%s: a wrong %s (%#) is refused by name before anything is held", async (id, param, fields, message) => {
  const customer = await running.service.account("100");
  const { path, body } = asking(shipped(id), fields);
  const { error, status } = await refusalOf(await customer.post(path, body));
  expect({ status, error }).toEqual(refusal(invalidValue(param, message)));
  expect(await customer.ledger("usage")).toEqual([]);
  await expectNothing(running, customer, "100.00");
});

test.each<readonly [id: string, fields: object, param: string]>([
  ["black-forest-labs/flux-1-kontext-pro", { prompt: "x" }, "image_url"],
  ["google/veo-3.1-image-to-video", { prompt: "x" }, "input.image_url"],
  ["google/gemini-omni-1.2-flash", { prompt: "x" }, "input.image"],
])("%s from an upload of another account: 404 naming the field", async (id, fields, param) => {
  const other = await running.service.account("1");
  const customer = await running.service.account("10");
  const upload = await uploaded(running.service, other, pngOf(3, 2));
  const { path, body } = asking(shipped(id), { ...fields, [param.replace("input.", "")]: upload });
  const unknown: Refusal = { status: 404, type: "not_found_error", code: "upload_not_found", param };
  expect(await refusalOf(await customer.post(path, body))).toEqual(refusal(unknown));
  await expectNothing(running, customer, "10.00");
});

test.each<readonly [ProviderName, string, object, string]>([
  ["gemini", "google/gemini-omni-1.2-flash", { prompt: "x" }, "input.image"],
  ["gemini", "google/gemini-nano-banana-2.1", { prompt: "x" }, "image"],
])("of %s, %s from a recording in place of an image: 400 by name, nothing is made", async (...row) => {
  const [name, id, fields, param] = row;
  const customer = await running.service.account("10");
  const before = await uploaded(running.service, customer, wavOf(1));
  const availableBefore = await customer.available();
  const { path, body } = asking(shipped(id), { ...fields, [param.replace("input.", "")]: before });
  expect(await refusalOf(await customer.post(path, body))).toEqual(refusal(invalidValue(param)));
  expect(running[name].requests).toEqual([]);
  await expectNothing(running, customer, availableBefore);
});

describe("uploads, where providers can reach the storage", () => {
  const reached = mediaServiceOfFile({ S3_PUBLIC_ENDPOINT: "https://storage.acme-cloud.com" });
  const linked = expect.stringMatching(/^https:\/\/storage\.acme-cloud\.com\/.*X-Amz-Signature=/) as string;

  test.each<readonly [name: "fal" | "replicate", id: string, field: string]>([
    ["fal", "google/veo-3.1-image-to-video", "image_url"],
    ["fal", "kuaishou/kling-3.0-pro-image-to-video", "start_image_url"],
  ])("go to %s as links (%s)", async (name, id, field) => {
    const { service } = reached;
    const customer = await service.account("10");
    const upload = await uploaded(service, customer, pngOf(30, 20));
    const { path, body } = asking(shipped(id), { prompt: "waves", [field]: upload });
    reached[name].respond({ output: { video: { url: "0.mp4" } } });
    const { answer } = await paid<MediaAnswer>(service, customer, path, body);
    expect(answer.files).toHaveLength(1);
    expect(JSON.stringify(answer)).not.toContain("acme-cloud");
    expect(posted(reached[name])[0]?.body[field]).toEqual(linked);
  });

  test("are sent to Google as bytes: it fetches nothing", async () => {
    const { service } = reached;
    const customer = await service.account("10");
    const image = await uploaded(service, customer, pngOf(30, 20));
    const { path, body } = asking(shipped("google/gemini-nano-banana-2.1"), { prompt: "night", image });
    await paid(service, customer, path, body);
    expect(JSON.stringify(posted(reached.gemini)[0]?.body)).toContain(pngOf(30, 20).toString("base64"));
  });
});
