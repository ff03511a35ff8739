import { ApiError } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chatProvider,
  clientOf,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  responsesProvider,
  type Target,
} from "../support/gemini-client-setup.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { mockErrorInfo, mockGeminiError, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockError } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { eventually } from "../support/service.ts";

const served = geminiService();

type Caller = Awaited<ReturnType<typeof newCaller>>;
const ways = {
  generateContent: ({ client }: Caller, model: string, contents?: string, config: object = {}) =>
    client.models.generateContent({ ...asking(model, contents), config }),
  generateContentStream: async ({ client }: Caller, model: string, contents?: string, config: object = {}) =>
    Array.fromAsync(await client.models.generateContentStream({ ...asking(model, contents), config })),
};

/** What the client throws: its message is the body of the answer, in Google's shape. */
async function thrownBy(calling: Promise<unknown>) {
  const error: unknown = await calling.then(
    () => undefined,
    (each: unknown) => each,
  );
  expect(error).toBeInstanceOf(ApiError);
  const { status, message } = error as ApiError;
  const { error: body, ...more } = JSON.parse(message) as { error: { code: number; message: string; status: string } };
  expect([more, body.code, Object.keys(body).toSorted()]).toEqual([{}, status, ["code", "message", "status"]]);
  return body;
}

describe.each(Object.entries(ways))("%s", (_, ask) => {
  test.each([
    [400, "INVALID_ARGUMENT", "error:400"],
    [429, "RESOURCE_EXHAUSTED", "error:429"],
    [502, "INTERNAL", "error:502"],
    [503, "UNAVAILABLE", "error:503"],
    [504, "DEADLINE_EXCEEDED", "error:504"],
  ])("%i %s", async (code, status, contents) => {
    const caller = await newCaller(served);
    expect(await thrownBy(ask(caller, local.model, contents))).toMatchObject({ code, status });
    await served.service.settled();
    expect(await caller.customer.available()).toBe("10.00");
  });

  test("401, 402, 404, and the account's own limit", async () => {
    const caller = await newCaller(served);
    const stranger = { ...caller, client: clientOf(served.service, { ...caller.customer, key: "live_nobody" }) };
    expect(await thrownBy(ask(stranger, local.model))).toMatchObject({ code: 401, status: "UNAUTHENTICATED" });
    const poor = await newCaller(served, "0.001");
    expect(await thrownBy(ask(poor, google.model, undefined, { maxOutputTokens: 8_000 }))).toEqual({
      code: 402,
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(/You asked for up to 8000 tokens; the balance covers \d+\./),
    });
    expect(await thrownBy(ask(caller, "gemini-0.1-none"))).toEqual({
      code: 404,
      status: "NOT_FOUND",
      message: expect.stringContaining("gemini-0.1-none"),
    });
    const customer = await served.service.account("1", { limits: { requests_per_minute: 1 } });
    const limited = { customer, client: clientOf(served.service, customer) };
    await ask(limited, local.model);
    expect(await thrownBy(ask(limited, local.model))).toMatchObject({ code: 429, status: "RESOURCE_EXHAUSTED" });
    expect(served.gemini.requests).toEqual([]);
  });
});

describe("what the provider answers", () => {
  const healthy = async (target: Target) => {
    const caller = await newCaller(served);
    await eventually(() =>
      ways.generateContent(caller, target.model).then(
        () => true,
        () => undefined,
      ),
    );
    return newCaller(served);
  };
  const busy = { code: 503, status: "UNAVAILABLE" };
  const broken = { code: 502, status: "INTERNAL" };
  const refused = { code: 400, status: "INVALID_ARGUMENT", message: "Bad prompt." };
  const rows: readonly (readonly [Target, string, ProviderAnswer, object])[] = [
    [google, "400", mockGeminiError(400, "Bad prompt."), refused],
    [
      google,
      "400, of the operator's key",
      mockGeminiError(400, "API key not valid.", { details: [mockErrorInfo("API_KEY_INVALID")] }),
      broken,
    ],
    [google, "403", mockGeminiError(403, "secret"), broken],
    [google, "404", mockGeminiError(404, "secret"), broken],
    [google, "429", mockGeminiError(429, "secret", { details: [mockRetryInfo("1s")] }), busy],
    [google, "500", mockGeminiError(500, "secret"), broken],
    [google, "503", mockGeminiError(503, "secret"), broken],
    [chatProvider, "400", mockError(400, "Bad prompt."), refused],
    [chatProvider, "429", mockError(429, "secret", { headers: { "retry-after": "1" } }), busy],
    [responsesProvider, "400", mockError(400, "Bad prompt."), refused],
    [responsesProvider, "500", mockError(500, "secret"), broken],
    [messagesProvider, "400", mockAnthropicError(400, "Bad prompt."), refused],
    [messagesProvider, "529", mockAnthropicError(529, "secret", { headers: { "retry-after": "1" } }), busy],
  ];

  test.each(rows.map(([target, told, answer, expected]) => ({ target, name: target.name, told, answer, expected })))(
    "$name: $told",
    async ({ target, answer, expected }) => {
      for (const ask of Object.values(ways)) {
        const caller = await healthy(target);
        target.mock?.(served).respond(answer);
        const body = await thrownBy(ask(caller, target.model));
        expect(body).toMatchObject(expected);
        expect(body.message).not.toContain("secret");
        await served.service.settled();
        expect(await caller.customer.available()).toBe("10.00");
      }
    },
  );

  test("a client that tries again is served when the provider has room", async () => {
    await healthy(google);
    const retryOptions = { attempts: 5, initialDelay: 0.4, jitter: 0 };
    const { client } = await newCaller(served, "10", { retryOptions });
    served.gemini.respond(mockGeminiError(429, "busy", { details: [mockRetryInfo("0.5s")] }));
    const answer = await client.models.generateContent(asking(google.model));
    expect(answer.text).toBe(google.says);
  });
});
