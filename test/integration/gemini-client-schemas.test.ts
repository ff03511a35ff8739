import type { GenerateContentResponse } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chatProvider,
  geminiService,
  local,
  messagesProvider,
  newCaller,
  responsesProvider,
  sent,
  targets,
} from "../support/gemini-client-setup.ts";

const served = geminiService();

const textIn = (chunks: readonly GenerateContentResponse[]) => chunks.map(({ text = "" }) => text).join("");

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer" } },
    required: ["name", "age"],
  };
  const capitals = {
    type: "OBJECT",
    properties: { name: { type: "STRING" }, age: { type: "INTEGER" } },
    required: ["name", "age"],
  };
  const ada = { name: "Ada", age: 36 };

  describe.each(targets)("$name", (target) => {
    test.each([
      ["responseSchema", { responseSchema: capitals }],
      ["responseJsonSchema", { responseJsonSchema: schema }],
    ])("%s: the answer fits", async (_, field) => {
      const { client } = await newCaller(served);
      if (target === chatProvider) served.provider.always({ text: JSON.stringify(ada) });
      const config = { responseMimeType: "application/json", ...field } as object;
      const request = { model: target.model, contents: 'I met "Ada", who is 36.', config };
      const answer = await client.models.generateContent(request);
      const said = JSON.parse(answer.text ?? "") as object;
      expect(said).toEqual({ name: expect.any(String), age: expect.any(Number) });
      const chunks = await Array.fromAsync(await client.models.generateContentStream(request));
      expect(JSON.parse(textIn(chunks))).toEqual(said);
      const closed = { ...schema, additionalProperties: false };
      const expected: Readonly<Record<string, object>> = {
        "Google's": { generationConfig: { responseMimeType: "application/json", ...field } },
        chat: { response_format: { type: "json_schema", json_schema: { schema: closed, strict: true } } },
        responses: { text: { format: { type: "json_schema", schema: closed, strict: true } } },
        messages: { output_config: { format: { type: "json_schema", schema: closed } } },
      };
      expect(sent(served, target)).toMatchObject(expected[target.name] ?? {});
    });
  });

  test("an enum is no JSON: refused by name where no format has it", async () => {
    const { client } = await newCaller(served);
    const config = { responseMimeType: "text/x.enum", responseSchema: { type: "STRING", enum: ["a", "b"] } } as object;
    for (const { model } of [local, chatProvider, responsesProvider, messagesProvider]) {
      const calling = client.models.generateContent({ ...asking(model), config });
      await expect(calling).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("generationConfig.responseMimeType"),
      });
    }
  });
});
