import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { expect, onTestFinished, test } from "vitest";
import { mockText, openaiAnswer, startMockOpenai } from "../support/mock-openai.ts";
import type { FurtherRoutes } from "../support/mock-provider.ts";
import { temporaryFolder } from "../support/program.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { asking, entriesOf } from "../support/service-setup.ts";

/** The overlay of docs/guides/own-server.md, with the address of a server without a key. */
async function overlayOf(baseUrl: string): Promise<string> {
  const page = await readFile("docs/guides/own-server.md", "utf8");
  const text = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  expect(text).toContain('"base_url": "http://127.0.0.1:11434/v1"');
  expect(text.trim().split("\n").length).toBeLessThanOrEqual(15);
  const file = join(await temporaryFolder(), "overlay.json");
  await writeFile(file, text.replace("http://127.0.0.1:11434/v1", baseUrl));
  return file;
}

/** Answers as OpenAI does, without asking for a key. */
const keyless: FurtherRoutes = {
  answer: (request) =>
    openaiAnswer({ ...request, headers: { ...request.headers, authorization: "Bearer of-nobody" } }, {}),
  reset() {},
};

test("the printed overlay serves an own server without a key: in its format, in another one, streamed, and charged", async () => {
  const openai = await startMockOpenai({ routes: keyless });
  onTestFinished(() => openai.close());
  const CATALOG_OVERLAY = await overlayOf(openai.url);
  const service = await startService(await testStores(), { env: { CATALOG_OVERLAY, NATIVE_FORMATS_ANY_MODEL: "on" } });
  const customer = await service.account("1.00");
  const listed = (await Array.fromAsync(customer.openai.models.list())).map(({ id }) => id);
  expect(listed).toContain("mine/qwen3");

  const answer = await customer.openai.chat.completions.create(asking("mine/qwen3"));
  expect(answer.choices[0]?.message.content).toBe(mockText);
  const [request] = openai.requests;
  expect([request?.headers.authorization, request?.body["model"]]).toEqual([undefined, "qwen3:8b"]);

  const anthropic = new Anthropic({ apiKey: customer.key, baseURL: service.baseUrl, maxRetries: 0 });
  const stream = anthropic.messages.stream({
    model: "mine/qwen3",
    max_tokens: 100,
    messages: [{ role: "user", content: "Hello!" }],
  });
  expect(await stream.finalText()).toBe(mockText);
  const entries = await entriesOf(service, customer);
  // 9 tokens in for 0.10 a million, 8 out for 0.40.
  expect(entries.map(({ amount_usd }) => amount_usd)).toEqual(["-0.0000041", "-0.0000041"]);
});
