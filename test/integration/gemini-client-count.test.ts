import { describe, expect, test } from "vitest";
import {
  asking,
  chatProvider,
  clientOf,
  entriesOf,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  ownName,
  responsesProvider,
} from "../support/gemini-client-setup.ts";
import { pngOf, uploaded } from "../support/generation-setup.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";

const served = geminiService();
const paths = () =>
  [served.gemini, served.provider, served.anthropic].flatMap(({ requests }) => requests.map(({ path }) => path));

test.each([
  { ...google, by: "provider", path: `/v1beta/models/${ownName}:countTokens` },
  { ...messagesProvider, by: "provider", path: "/v1/messages/count_tokens" },
  { ...chatProvider, by: "estimate", path: undefined },
  { ...responsesProvider, by: "estimate", path: undefined },
  { ...local, by: "estimate", path: undefined },
])("$name counts by $by, for nothing, with nothing on the balance", async ({ model, by, path }) => {
  const customer = await served.service.account("0");
  const { totalTokens = 0, sdkHttpResponse } = await clientOf(served.service, customer).models.countTokens(
    asking(model),
  );
  expect(totalTokens).toBeGreaterThan(1);
  expect(totalTokens).toBeLessThan(20);
  expect(sdkHttpResponse?.headers?.["x-xm-token-count"]).toBe(by);
  expect(paths()).toEqual(path ? [path] : []);
  const entries = await entriesOf(served.service, customer);
  expect(entries.filter(({ amount_usd }) => amount_usd !== "0.00")).toEqual([]);
  expect(await customer.available()).toBe("0.00");
});

describe("generateContentRequest: all that an answer would be made from is counted", () => {
  const contents = [{ role: "user", parts: [{ text: "Hello there" }] }];
  const systemInstruction = { parts: [{ text: "Be as brief as you can be, and kind." }] };
  const tools = [
    {
      functionDeclarations: [{ name: "get_weather", description: "Tells the weather", parameters: { type: "OBJECT" } }],
    },
  ];

  test.each([google, messagesProvider, chatProvider, local])("$name", async ({ model }) => {
    const customer = await served.service.account("0");
    const count = async (body: object) => {
      const response = await customer.post(`/v1beta/models/${model}:countTokens`, body);
      expect(response.status).toBe(200);
      return ((await response.json()) as { totalTokens: number }).totalTokens;
    };
    const alone = await count({ contents });
    const request = { model: `models/${model}`, contents, systemInstruction, tools };
    expect(await count({ generateContentRequest: request })).toBeGreaterThan(alone + 5);
    const whole = { contents, systemInstruction, tools };
    expect(served.gemini.requests.map((heard) => heard.body["generateContentRequest"])).toEqual(
      model === google.model ? [{ contents }, whole].map((each) => ({ model: `models/${ownName}`, ...each })) : [],
    );
  });

  test("both forms at once, and none: refused by name", async () => {
    const customer = await served.service.account("0");
    const path = `/v1beta/models/${ownName}:countTokens`;
    for (const [body, field] of [
      [{ contents, generateContentRequest: { contents } }, /contents/],
      [{}, /contents/],
      [{ generateContentRequest: {} }, /generateContentRequest\.contents/],
    ] as const) {
      const response = await customer.post(path, body);
      expect([response.status, await response.json()]).toEqual([
        400,
        { error: { code: 400, message: expect.stringMatching(field), status: "INVALID_ARGUMENT" } },
      ]);
    }
    expect(paths()).toEqual([]);
  });
});

test("uploads are counted with their bytes, and not by another account", async () => {
  const { client, customer } = await newCaller(served);
  const id = await uploaded(served.service, customer, pngOf(3, 2));
  const request = {
    model: ownName,
    contents: [{ role: "user", parts: [{ fileData: { mimeType: "image/png", fileUri: id } }] }],
  };
  await client.models.countTokens(request);
  expect(JSON.stringify(served.gemini.requests.at(-1)?.body)).toContain(pngOf(3, 2).toString("base64"));
  const { client: other } = await newCaller(served);
  await expect(other.models.countTokens(request)).rejects.toMatchObject({ status: 404 });
});

test("a provider that cannot be asked: an estimate; one that refuses: its words", async () => {
  const { client } = await newCaller(served);
  const by = async () => {
    const { sdkHttpResponse } = await client.models.countTokens(asking(ownName));
    return sdkHttpResponse?.headers?.["x-xm-token-count"];
  };
  expect(await by()).toBe("provider");
  served.gemini.respond(mockGeminiError(500, "down"));
  expect(await by()).toBe("estimate");
  expect(await by()).toBe("provider");
  served.gemini.respond(mockGeminiError(400, "Unsupported MIME type: image/x."));
  await expect(client.models.countTokens(asking(ownName))).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("Unsupported MIME type: image/x."),
  });
});
