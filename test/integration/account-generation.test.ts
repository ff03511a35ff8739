import { expect, test } from "vitest";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

const messages = [{ role: "user", content: "Hello." }];
const calls = [
  ["/v1/chat/completions", { messages }],
  ["/v1/messages", { messages, max_tokens: 20 }],
  ["/v1/responses", { input: "Hello." }],
] as const;

test.for(calls.flatMap(([path, body]) => [false, true].map((stream) => ({ path, body, stream }))))(
  "a call is found by the id of its answer: $path, stream: $stream",
  async ({ path, body, stream }) => {
    const { service } = running;
    const customer = await service.account("1");
    const response = await customer.post(path, { model: "local/chat", ...body, stream });
    const text = await response.text();
    // The first id of a response, or of a stream's first event, is the response's own.
    const id = /"id":\s*"([^"]+)"/.exec(text)?.[1] ?? "";
    const found = await fetch(`${service.baseUrl}/v1/generation?id=${id}`, {
      headers: { authorization: `Bearer ${customer.key}` },
    });
    expect([id, found.status]).toEqual([id, 200]);
    const { data } = (await found.json()) as { data: object };
    expect(data).toMatchObject({
      id: response.headers.get("x-request-id"),
      model: "local/chat",
      provider_name: expect.any(String),
      api_type: "completions",
      cancelled: false,
    });
  },
);
