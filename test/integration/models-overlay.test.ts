import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, expect, test } from "vitest";
import { entriesOf, nanoUsd, serviceOfFile } from "../support/service-setup.ts";

const CATALOG_OVERLAY = join(tmpdir(), `overlay-${randomUUID()}.json`);
writeFileSync(
  CATALOG_OVERLAY,
  JSON.stringify({
    models: {
      "local/chat": {
        released: "2020-01-01",
        deprecated_at: "2020-01-02",
        pricing: { input: "1000", output: "2000", cached_input: null },
      },
      "local/embeddings": null,
      "anthropic/claude-haiku-4-5": { deprecated_at: "2199-01-01" },
    },
  }),
);
afterAll(() => rmSync(CATALOG_OVERLAY));

const running = serviceOfFile({ CATALOG_OVERLAY, ANTHROPIC_API_KEY: "k" });
const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${running.service.baseUrl}/v1`, maxRetries: 0 });

test("a call costs the overlay's price, in the API's hold and in the worker's capture", async () => {
  const customer = await running.service.account("100");
  const client = clientOf(customer.key);
  const { usage } = await client.chat.completions.create({
    model: "local/chat",
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 5,
  });
  const { prompt_tokens = 0, completion_tokens = 0 } = usage ?? {};
  const [entry] = await entriesOf(running.service, customer);
  expect(prompt_tokens + completion_tokens).toBeGreaterThan(2);
  expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-BigInt(prompt_tokens * 1_000_000 + completion_tokens * 2_000_000));
  // The balance would cover it at the shipped price.
  const asked = client.chat.completions.create({
    model: "local/chat",
    messages: [{ role: "user", content: "word ".repeat(30_000) }],
  });
  await expect(asked).rejects.toMatchObject({ status: 402 });
  const removed = client.embeddings.create({ model: "local/embeddings", input: "Hi" });
  await expect(removed).rejects.toMatchObject({ status: 404, code: "model_not_found" });
});

test("a deprecated model is listed with the day, and served", async () => {
  const models = (await Array.fromAsync(clientOf("nobody").models.list())) as unknown as Record<string, unknown>[];
  const dates = models.filter(({ deprecated_at }) => deprecated_at !== null);
  expect(dates.map(({ id, deprecated_at }) => [id, deprecated_at])).toEqual([
    ["local/chat", Date.UTC(2020, 0, 2) / 1000],
    ["anthropic/claude-haiku-4-5", Date.UTC(2199, 0, 1) / 1000],
  ]);
  expect(models.map(({ id }) => id)).not.toContain("local/embeddings");
});

test("Anthropic's list has the same as its lifecycle, and filters by it", async () => {
  const { models } = new Anthropic({ apiKey: "nobody", baseURL: running.service.baseUrl, maxRetries: 0 });
  const deprecated = { lifecycle: "deprecated", deprecated_at: "2020-01-02T00:00:00Z", retires_at: null };
  const active = { lifecycle: "active", deprecated_at: null };
  expect(await models.retrieve("local/chat")).toMatchObject(deprecated);
  // The change does not apply before its day.
  expect(await models.retrieve("anthropic/claude-haiku-4-5")).toMatchObject(active);
  const idsOf = async (...lifecycle: ("active" | "deprecated" | "retired")[]) =>
    (await models.list({ lifecycle, limit: 1_000 })).data.map(({ id }) => id);
  const [all, current] = [await idsOf(), await idsOf("active")];
  expect(await idsOf("deprecated")).toEqual(["local/chat"]);
  expect(current).toEqual(all.filter((id) => id !== "local/chat"));
  expect(await idsOf("active", "deprecated")).toEqual(all);
  expect(await idsOf("retired")).toEqual([]);
});
