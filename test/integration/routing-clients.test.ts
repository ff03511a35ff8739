import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { expect, test } from "vitest";
import { mockError } from "../support/mock-openai.ts";
import { faces, send, streamFaces } from "../support/native-formats.ts";
import { routingService } from "../support/routing-setup.ts";
import type { Customer } from "../support/service.ts";
import { nanoUsd } from "../support/service-setup.ts";

const running = routingService();
const [first, cheap, vectors, otherVectors] = ["acme/copy-0", "acme/cheap", "acme/vectors", "acme/other-vectors"];
const messages = [{ role: "user" as const, content: "Hello" }];

/** The routing fields that the clients send in addition to their own. */
const routed = { models: [cheap], provider: { ignore: ["beta"], sort: "price" as const } };
const anthropicOf = ({ key }: Customer) =>
  new Anthropic({ apiKey: key, baseURL: running.service.baseUrl, maxRetries: 0 });
const googleOf = ({ key }: Customer, extraBody: Record<string, unknown>) =>
  new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: running.service.baseUrl, extraBody } });

const completionsFace = {
  name: "legacy completions",
  ask: (model: string, prompt: string, more: object) => ({ path: "/v1/completions", body: { model, prompt, ...more } }),
};

test.each([
  ...[...faces, completionsFace].map(({ name, ask }) => ({ name, ask })),
  ...streamFaces.map(({ name, stream }) => ({ name: `a stream of ${name}`, ask: stream })),
])("$name: a fallback answers in the caller's format, at its own price", async ({ ask }) => {
  const { service, alpha, gamma } = running;
  const customer = await service.account("1");
  alpha.always(mockError(400, "no", { code: "invalid_prompt" }));
  const response = await send(customer, ask(first, "Hello", routed));
  expect([response.status, response.headers.get("x-xm-model")]).toEqual([200, cheap]);
  const named = (await response.text()).match(/"model(Version)?":"[^"]+"/g) ?? [];
  expect(new Set(named.map((each) => each.split(":")[1]))).toEqual(new Set([`"${cheap}"`]));
  await service.settled();
  // 9 input and 8 output tokens, according to the provider.
  expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - (9n * 100n + 8n * 400n));
  const [entry] = await customer.ledger("usage");
  expect(entry).toMatchObject({ request: { model: cheap, upstream: "gamma", attempts: [{ model: first }, {}] } });
  for (const { body } of [...alpha.requests, ...gamma.requests])
    expect(Object.keys(body)).not.toEqual(expect.arrayContaining(["models"]));
  expect(alpha.requests[0]?.body).not.toHaveProperty("provider");
  expect(gamma.requests).toHaveLength(1);
});

test("embeddings: a fallback answers, at its own price", async () => {
  const { service, alpha } = running;
  const customer = await service.account("1");
  alpha.always(mockError(500, "oops"));
  const more = { models: [otherVectors] };
  const answer = await customer.openai.embeddings.create({ model: vectors, input: "three short words", ...more });
  expect(answer).toMatchObject({ model: otherVectors, usage: { prompt_tokens: 3 } });
  const contents = "three short words";
  const { embeddings } = await googleOf(customer, more).models.embedContent({ model: vectors, contents });
  expect(embeddings?.[0]?.values).toHaveLength(8);
  await service.settled();
  expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - 2n * 3n * 500n);
});

test("a count is of the first model, and counts are free", async () => {
  const customer = await running.service.account("1");
  const request = { model: first, messages, ...routed };
  expect((await anthropicOf(customer).messages.countTokens(request)).input_tokens).toBeGreaterThan(0);
  await running.service.settled();
  expect(await customer.available()).toBe("1.00");
});
