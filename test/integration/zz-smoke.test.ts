import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { test } from "vitest";
import { serviceOfFile } from "./service-setup.ts";

const running = serviceOfFile({});
test("smoke", async () => {
  const { service } = running;
  const customer = await service.account("5");
  const show = async (path: string, body: unknown, headers = {}) => {
    const r = await customer.post(path, body, { headers });
    console.log(
      path,
      r.status,
      JSON.stringify(
        Object.fromEntries(
          [...r.headers].filter(([k]) => /x-|content-type|request-id/.test(k) && !/ratelimit|policy|options/.test(k)),
        ),
      ),
      "\n",
      (await r.text()).slice(0, 1500),
    );
  };
  const m = { model: "local/chat", max_tokens: 100, messages: [{ role: "user", content: "hello world" }] };
  await show("/v1/messages", m);
  await show("/v1/messages", { ...m, stream: true, top_k: 3, metadata: { user_id: "x" } });
  await show("/v1/messages/count_tokens", { ...m, max_tokens: undefined });
  await show("/v1/responses", { model: "local/chat", input: "hello world", metadata: { a: "b" } });
  await show("/v1/responses", { model: "local/chat", input: "hello world", stream: true });
  await show("/v1/responses", { model: "local/chat", input: "stream-error:2", stream: true });
  const g = { contents: [{ role: "user", parts: [{ text: "hello" }] }] };
  await show("/v1beta/models/local/chat:generateContent", g);
  await show("/v1beta/models/local/chat:streamGenerateContent?alt=sse", g);
  await show("/v1beta/models/local/chat:streamGenerateContent", g);
  await show("/v1/models/local%2Fchat:countTokens", g);
  await show("/v1beta/models/local/chat:embedContent", g);
  await show("/v1beta/models/gpt-9:generateContent", g);
  await show("/v1/messages", { ...m, model: "openai/gpt-4.1-mini" });
  await show("/v1/messages", { ...m, model: "nope" });
  await show("/v1/messages/x", {});
  await show("/v1/responses", { model: "gpt-4.1-mini", input: "hi" });
  const a = new Anthropic({ apiKey: customer.key, baseURL: service.baseUrl, maxRetries: 0 });
  console.log(JSON.stringify(await a.messages.stream(m as never).finalMessage()));
  const ai = new GoogleGenAI({ apiKey: customer.key, httpOptions: { baseUrl: service.baseUrl } });
  console.log((await ai.models.generateContent({ model: "local/chat", contents: "why" })).text);
  for await (const c of await ai.models.generateContentStream({ model: "local/chat", contents: "why not" }))
    console.log(c.text);
  console.log(await ai.models.countTokens({ model: "local/chat", contents: "why" }));
  console.log(await service.settled(), (await customer.ledger()).length);
});
