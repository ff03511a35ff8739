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
  ownName,
} from "../support/gemini-client-setup.ts";

const served = geminiService();

describe("paths and keys", () => {
  test.each([ownName, google.model, local.model, chatProvider.model, messagesProvider.model, `models/${local.model}`])(
    "apiVersion v1 and v1beta: %s",
    async (model) => {
      for (const apiVersion of ["v1", "v1beta"]) {
        const { client } = await newCaller(served, "10", { apiVersion });
        const answer = await client.models.generateContent(asking(model));
        expect(answer.text).toBeTruthy();
      }
    },
  );

  const body = { contents: [{ parts: [{ text: "Hello there" }] }] };

  test.each([
    "/v1beta/local/chat:generateContent",
    "/v1beta/models/local/chat:generateContent",
    "/v1beta/models/local%2Fchat:generateContent",
    "/v1beta/local%2fchat:generateContent",
    "/v1/models/local/chat:generateContent",
    "/v1/local%2Fchat:generateContent",
    "/v1beta/models/local/chat%3AgenerateContent",
    `/v1beta/${ownName}:generateContent`,
    `/v1beta/models/google%2F${ownName}:generateContent`,
  ])("%s, with the key in each of its places", async (path) => {
    const customer = await served.service.account("1");
    const { key } = customer;
    const send = (query: string, headers: Record<string, string>) =>
      fetch(`${served.service.baseUrl}${path}${query}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const answers = await Promise.all([
      send("", { "x-goog-api-key": key }),
      send(`?key=${key}`, {}),
      send("", { authorization: `Bearer ${key}` }),
      send("?alt=json&%24alt=json", { "x-goog-api-key": key }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const answer of answers)
      expect(await answer.json()).toMatchObject({
        candidates: [{ content: { parts: [{ text: expect.any(String) }] } }],
      });
  });

  test("a bare name is Google's alone", async () => {
    const { customer } = await newCaller(served);
    const calling = clientOf(served.service, customer).models.generateContent(asking("gpt-4.1-mini"));
    await expect(calling).rejects.toMatchObject({ status: 404 });
  });
});
