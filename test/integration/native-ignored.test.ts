import { expect, test } from "vitest";
import { localModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
const messages = { model: localModel, max_tokens: 20, messages: [{ role: "user", content: "Hi" }] };

test.each([false, true])("hints that the upstream does not take are named, stream: %s", async (stream) => {
  const customer = await running.service.account("1");
  const response = await customer.post("/v1/messages", { ...messages, top_k: 3, metadata: { user_id: "u" }, stream });
  expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, "top_k, metadata"]);
  await response.text();
});

test("nothing is named where all is taken", async () => {
  const customer = await running.service.account("1");
  const response = await customer.post("/v1/messages", messages);
  expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, null]);
});

test("names that no header could have are not repeated, and no call is lost by them", async () => {
  const customer = await running.service.account("1");
  const hostile = { "a\r\nx-evil: 1": 1, "\u{1F600}": 1, ["n".repeat(10_000)]: 1, plain_one: 1 };
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`field_${n}`, n]));
  const response = await customer.post("/v1/messages", { ...messages, ...hostile, ...many });
  expect(response.status).toBe(200);
  const named = response.headers.get("x-ignored-params")?.split(", ") ?? [];
  expect(named).toHaveLength(32);
  expect(named[0]).toBe("plain_one");
  expect(response.headers.get("x-evil")).toBe(null);
  await running.service.settled();
});
