import { expect, test } from "vitest";
import { fileAt, type ImageAnswer, type MediaAnswer, paid, pngOf, uploaded } from "../support/generation-setup.ts";
import { mockMp3, mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { asking, costOf, mediaModels, type Shipped } from "../support/native-media-prices.ts";
import { mediaServiceOfFile, posted } from "../support/native-media-setup.ts";

const running = mediaServiceOfFile();

/** The outputs of hosted models by task; for other tasks the mocks have their own. */
const outputs: Readonly<Record<string, unknown>> = {
  video: { video: { url: "0.mp4" } },
  speech: { audio: { url: "0.mp3" } },
  music: { audio: { url: "0.mp3" } },
};
const texts = ["prompt", "text"];

/** A minimal valid input; every field other than text is an upload. */
const leastFor = ({ input_schema: { required = [] } }: Shipped, upload: string) =>
  Object.fromEntries(required.map((field) => [field, texts.includes(field) ? "Ein Fuchs 🦊" : upload]));

/** The cost of one minimal call, derived by hand from the catalog's units. */
function usageFor({ units, input_schema: { properties } }: Shipped, uploads: number): Record<string, number> {
  return Object.fromEntries(
    Object.entries(units).map(([key, unit]) => {
      if ("characters_of" in unit) return [key, 11];
      if ("items_of" in unit) return [key, uploads];
      const counted = unit["field"] ?? unit["started_minutes_of"];
      const given = Number.parseInt(String(properties[String(counted)]?.default), 10);
      return [key, "field" in unit ? given : Math.ceil(given / 60_000)];
    }),
  );
}

test("there are models of every task that these providers serve", () => {
  expect(new Set(mediaModels.map(({ task }) => task))).toEqual(new Set(["images", "video", "speech", "music"]));
  expect(new Set(mediaModels.map(({ upstreams }) => upstreams[0]?.upstream))).toEqual(
    new Set(["replicate", "fal", "gemini"]),
  );
});

test.each(mediaModels.map((model) => [model.id, model] as const))(
  "%s: the required fields and the defaults make a file, for what the catalog says",
  async (_, model) => {
    const { service } = running;
    const [{ upstream, model: theirs } = { upstream: "", model: "" }] = model.upstreams;
    const provider = running[upstream as "replicate" | "fal" | "gemini"];
    if (upstream !== "gemini" && outputs[model.task] !== undefined) {
      const { fal, replicate } = running;
      (upstream === "fal" ? fal : replicate).respond({ output: outputs[model.task] });
    }
    const customer = await service.account("100");
    const { required = [] } = model.input_schema;
    const needsUpload = required.some((field) => !texts.includes(field));
    const upload = needsUpload ? await uploaded(service, customer, pngOf(3, 2)) : "";
    const { path, body } = asking(model, leastFor(model, upload));
    const { answer, entry, costNanoUsd } = await paid<ImageAnswer & MediaAnswer>(service, customer, path, body);

    const usage = usageFor(model, 0);
    expect(costNanoUsd).toBe(costOf(model, usage));
    expect(costNanoUsd).toBeGreaterThan(0n);
    expect(entry.request).toMatchObject({ model: model.id, upstream, attempts: { length: 1 } });

    const files = model.task === "images" ? answer.data : answer.files;
    expect(files).toHaveLength(1);
    const made = { images: mockPng, video: mockMp4, speech: mockMp3, music: mockMp3 }[model.task as "images"];
    expect((await fileAt(files[0]?.url ?? "")).bytes.equals(made)).toBe(true);
    const [submitted, ...others] = posted(provider);
    expect(others).toEqual([]);
    const named = `${submitted?.path} ${String(submitted?.body["model"])}`;
    expect(named).toContain(theirs);
    const sent = JSON.stringify(submitted?.body);
    const image = `"data:image/png;base64,${pngOf(3, 2).toString("base64")}"`;
    for (const part of ["Ein Fuchs 🦊", ...(needsUpload ? [image] : [])]) expect(sent).toContain(part);
    expect(sent).not.toContain("upl_");
  },
);
