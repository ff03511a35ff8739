import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { mockError, mockText } from "../support/mock-openai.ts";
import { asking, localModel, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

/** The official client with its defaults, and a log of its requests. */
async function countingClient(maxRetries: number, limits?: Record<string, number>) {
  const customer = await running.service.account("1", limits ? { limits } : {});
  const sent: { at: number; status: number }[] = [];
  const openai = new OpenAI({
    apiKey: customer.key,
    baseURL: `${running.service.baseUrl}/v1`,
    maxRetries,
    fetch: async (url, init) => {
      const at = performance.now();
      const response = await fetch(url as string, init as RequestInit);
      sent.push({ at, status: response.status });
      return response;
    },
  });
  return { openai, sent };
}

describe("the client's error classes", () => {
  test("AuthenticationError", async () => {
    const openai = new OpenAI({ apiKey: `live_${"x".repeat(40)}`, baseURL: `${running.service.baseUrl}/v1` });
    const thrown: unknown = await openai.chat.completions.create(asking(localModel)).catch((each: unknown) => each);
    expect(thrown).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(thrown).toMatchObject({
      status: 401,
      type: "authentication_error",
      code: "invalid_api_key",
      requestID: expect.stringMatching(/^req_/),
    });
  });

  test("BadRequestError names the field", async () => {
    const { openai } = await running.service.account("1");
    const thrown: unknown = await openai.chat.completions
      .create({ ...asking(localModel), temperature: "hot" as unknown as number })
      .catch((each: unknown) => each);
    expect(thrown).toBeInstanceOf(OpenAI.BadRequestError);
    expect(thrown).toMatchObject({ code: "invalid_value", param: "temperature" });
  });

  test("a provider's BadRequestError is passed on with its field and message", async () => {
    const { openai } = await running.service.account("1");
    running.provider.respond(
      mockError(400, "Invalid 'tools[0].name'.", { param: "tools[0].name", code: "invalid_value" }),
    );
    const thrown: unknown = await openai.chat.completions.create(asking(providerModel)).catch((each: unknown) => each);
    expect(thrown).toBeInstanceOf(OpenAI.BadRequestError);
    expect(thrown).toMatchObject({ param: "tools[0].name", message: "400 Invalid 'tools[0].name'." });
  });

  test("NotFoundError, PermissionDeniedError, RateLimitError, InternalServerError", async () => {
    const customer = await running.service.account("1", { limits: { tokens_per_minute: 10 } });
    const { openai } = customer;
    await expect(openai.chat.completions.create(asking("nobody/nothing"))).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const tooMuch = openai.chat.completions.create({ ...asking(localModel), max_tokens: 1_000 });
    await expect(tooMuch).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    const rich = await running.service.account("1");
    const failing = rich.openai.chat.completions.create(asking(localModel, "error:502"));
    await expect(failing).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    await running.service.admin("PATCH", `/accounts/${rich.id}`, { frozen: true });
    const frozen = rich.openai.chat.completions.create(asking(localModel));
    await expect(frozen).rejects.toBeInstanceOf(OpenAI.PermissionDeniedError);
  });

  test("an error before the first chunk keeps its status", async () => {
    const { openai } = await running.service.account("1");
    const stream = openai.chat.completions.create({ ...asking(localModel, "error:503"), stream: true });
    await expect(stream).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  });
});

describe("maxRetries", () => {
  test("honors Retry-After: the second attempt comes after it and succeeds", async () => {
    const { openai, sent } = await countingClient(1);
    running.provider.respond(mockError(429, "slow down", { headers: { "retry-after": "1" } }));
    const answer = await openai.chat.completions.create(asking(providerModel));
    expect(answer.choices[0]?.message.content).toBe(mockText);
    expect(sent.map(({ status }) => status)).toEqual([503, 200]);
    expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
  });

  test("a call that can never pass is not repeated: x-should-retry is false", async () => {
    const { openai, sent } = await countingClient(3, { tokens_per_minute: 10 });
    const calling = openai.chat.completions.create({ ...asking(localModel), max_tokens: 1_000 });
    await expect(calling).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    expect(sent.map(({ status }) => status)).toEqual([429]);
  });

  test("a stream is repeated as long as it has not begun", async () => {
    const { openai, sent } = await countingClient(1);
    running.provider.respond(mockError(500, "oops"));
    const said = await openai.chat.completions.stream(asking(providerModel)).finalContent();
    expect(said).toBe(mockText);
    expect(sent.map(({ status }) => status)).toEqual([502, 200]);
  });
});
