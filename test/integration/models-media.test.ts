import { describe, expect, test } from "vitest";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

async function modelOf(id: string): Promise<Record<string, unknown>> {
  const answer = await fetch(`${running.service.baseUrl}/v1/models/${id}`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Record<string, unknown>;
}

describe("a model for images or media", () => {
  test("has its input schema and every price that it can have", async () => {
    expect(await modelOf("local/video")).toMatchObject({
      type: "video",
      endpoint: "/v1/media/generations",
      x_pricing: {
        second: { unit: "second", list_usd: "0.01", elite_usd: "0.009" },
        second_1280x720: { unit: "second", list_usd: "0.02", elite_usd: "0.018" },
      },
      x_input_schema: {
        type: "object",
        required: ["prompt"],
        properties: { duration: { type: "integer", minimum: 1, maximum: 20, default: 4 } },
      },
    });
    expect(await modelOf("local/image")).toMatchObject({
      endpoint: "/v1/images/generations",
      x_pricing: { image: { unit: "image" }, input_image: { unit: "image" } },
    });
  });

  test("has them in the list too, where text models have no input schema", async () => {
    const answer = await fetch(`${running.service.baseUrl}/v1/models`);
    const { data } = (await answer.json()) as { data: Record<string, unknown>[] };
    const local = data.filter(({ owned_by }) => owned_by === "local");
    expect(local.map(({ id, x_input_schema }) => [id, x_input_schema !== undefined])).toEqual([
      ["local/chat", false],
      ["local/embeddings", false],
      ["local/image", true],
      ["local/speech", true],
      ["local/transcription", true],
      ["local/video", true],
      ["local/moderation", false],
      ["local/rerank", false],
    ]);
  });
});
