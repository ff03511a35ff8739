import { z } from "zod";
import { maxMediaTypeLength } from "../media-types.ts";
import { routingFields } from "../routing-fields.ts";

const flag = z.boolean().nullish();
const word = z.string().nullish();
const open = z.looseObject({}).nullish();

const mediaType = z.string().max(maxMediaTypeLength);

const inlineData = z.looseObject({ mimeType: mediaType.min(1), data: z.string() }).nullish();
const fileData = z.looseObject({ fileUri: z.string().min(1), mimeType: mediaType.nullish() }).nullish();

const part = z
  .looseObject({
    text: word,
    thought: flag,
    thoughtSignature: word,
    inlineData,
    fileData,
    functionCall: z.looseObject({ id: word, name: z.string().min(1), args: open }).nullish(),
    functionResponse: z
      .looseObject({
        id: word,
        name: z.string().min(1),
        response: open,
        parts: z.array(z.looseObject({ inlineData, fileData })).nullish(),
      })
      .nullish(),
  })
  .meta({ id: "GeminiPart" });

const content = z
  .looseObject({
    role: z
      .string()
      .regex(/^(user|model|function)$/i, "must be user or model")
      .nullish(),
    parts: z.array(part).nullish(),
  })
  .meta({ id: "GeminiContent" });

const declaration = z
  .looseObject({
    name: z.string().min(1),
    description: word,
    parameters: open,
    parametersJsonSchema: open,
  })
  .meta({ id: "FunctionDeclaration" });

const count = z.int().positive().max(1e9).nullish();

const fields = {
  systemInstruction: z.looseObject({ parts: z.array(part).nullish() }).nullish(),
  tools: z.array(z.looseObject({ functionDeclarations: z.array(declaration).nullish() })).nullish(),
  toolConfig: z
    .looseObject({
      functionCallingConfig: z
        .looseObject({ mode: word, allowedFunctionNames: z.array(z.string()).nullish() })
        .nullish(),
    })
    .nullish(),
  generationConfig: z
    .looseObject({
      maxOutputTokens: count,
      candidateCount: z.int().min(1).max(8).nullish(),
      temperature: z.number().min(0).max(2).nullish(),
      topP: z.number().min(0).max(1).nullish(),
      topK: z.number().min(0).nullish(),
      stopSequences: z.array(z.string()).max(16).nullish(),
      seed: z.int().nullish(),
      presencePenalty: z.number().min(-2).max(2).nullish(),
      frequencyPenalty: z.number().min(-2).max(2).nullish(),
      responseLogprobs: flag,
      logprobs: z.int().min(0).max(20).nullish(),
      responseMimeType: mediaType.nullish(),
      responseModalities: z.array(z.string()).nullish(),
      responseFormat: z
        .array(z.looseObject({ text: z.looseObject({ mimeType: mediaType.nullish() }).nullish() }))
        .nullish(),
      thinkingConfig: z
        .looseObject({ includeThoughts: flag, thinkingBudget: z.int().nullish(), thinkingLevel: word })
        .nullish(),
    })
    .nullish(),
  safetySettings: z.array(z.looseObject({})).nullish(),
  serviceTier: word,
  store: flag,
  ...routingFields,
};

/** A generateContent request with field names in camelCase. Other fields pass through. */
export const geminiRequest = z
  .looseObject({ contents: z.array(content).min(1), ...fields })
  .meta({ id: "GenerateContentRequest" });

export type GeminiRequest = z.infer<typeof geminiRequest>;

export const geminiCountRequest = z.looseObject({ generateContentRequest: geminiRequest });
