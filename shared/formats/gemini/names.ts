import { invalidValue } from "#errors";
import { type JsonObject, object } from "../json.ts";

/**
 * The provider reads each field under two names (`cachedContent`, `cached_content`), and one object where a list should be.
 * Here everything is brought to one form before it is looked at, and goes on in that form: what was checked is what the
 * provider gets. What the caller named (arguments, results, properties of schemas) stays as it is.
 */
interface Shape {
  readonly names: ReadonlySet<string>;
  /** By the name without its underscores and capitals. */
  readonly spellings: ReadonlyMap<string, string>;
  readonly inside: ReadonlyMap<string, { readonly shape: Shape; readonly isList: boolean }>;
}

const spelling = (name: string): string => name.toLowerCase().replaceAll("_", "");

/** A shape in a list stands for a list of such. */
function shape(names: string, inside: Readonly<Record<string, Shape | readonly [Shape]>> = {}): Shape {
  const all = [...names.split(" ").filter(Boolean), ...Object.keys(inside)];
  const inner = (each: Shape | readonly [Shape]) =>
    "names" in each ? { shape: each, isList: false } : { shape: each[0], isList: true };
  return {
    names: new Set(all),
    spellings: new Map(all.map((name) => [spelling(name), name])),
    inside: new Map(Object.entries(inside).map(([name, each]) => [name, inner(each)])),
  };
}

const media = {
  inlineData: shape("data mimeType displayName"),
  fileData: shape("fileUri mimeType displayName"),
};
const content = shape("role", {
  parts: [
    shape(
      "text thought thoughtSignature executableCode codeExecutionResult toolCall toolResponse videoMetadata " +
        "mediaResolution mediaProcessing partMetadata audioTranscription speechMetadata",
      {
        ...media,
        functionCall: shape("id name args partialArgs willContinue"),
        functionResponse: shape("id name response scheduling willContinue", {
          parts: [shape("mediaProcessing", media)],
        }),
      },
    ),
  ],
});
const thinkingConfig = shape("includeThoughts thinkingBudget thinkingLevel");
const tool = shape(
  "googleSearch googleSearchRetrieval codeExecution computerUse urlContext fileSearch googleMaps mcpServers retrieval " +
    "enterpriseWebSearch exaAiSearch parallelAiSearch",
  {
    functionDeclarations: [
      shape("name description behavior parameters parametersJsonSchema response responseJsonSchema"),
    ],
  },
);
const fields =
  "model cachedContent safetySettings labels serviceTier store continuationToken modelArmorConfig " +
  "generationOutputConfig routingConfig modelSelectionConfig";
const inside = {
  contents: [content] as const,
  systemInstruction: content,
  tools: [tool] as const,
  toolConfig: shape("retrievalConfig includeServerSideToolInvocations", {
    functionCallingConfig: shape("mode allowedFunctionNames streamFunctionCallArguments"),
  }),
  generationConfig: shape(
    "candidateCount maxOutputTokens stopSequences temperature topP topK seed presencePenalty frequencyPenalty " +
      "responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema responseModalities speechConfig " +
      "imageConfig mediaResolution enableEnhancedCivicAnswers audioTimestamp routingConfig modelSelectionConfig " +
      "audioTranscriptionConfig translationConfig generationOutputConfig continuationToken",
    { thinkingConfig, responseFormat: [shape("audio image video", { text: shape("mimeType schema") })] },
  ),
};
const request = shape(fields, inside);
/** The body of `countTokens`: the contents alone, or a whole request. */
const countRequest = shape(fields, { ...inside, generateContentRequest: request });
const schema = shape(
  "type format title description nullable enum items maxItems minItems properties required minProperties " +
    "maxProperties minimum maximum minLength maxLength pattern example anyOf propertyOrdering default " +
    "additionalProperties prefixItems",
);

/** The object with its fields under their one name; the same object if they are. */
function renamed(value: JsonObject, { names, spellings }: Shape, at: string): JsonObject {
  const fields = Object.keys(value);
  if (fields.every((field) => names.has(field))) return value;
  const seen = new Set<string>();
  return Object.fromEntries(
    fields.map((field) => {
      const name = names.has(field) ? field : (spellings.get(spelling(field)) ?? field);
      if (seen.has(name)) throw invalidValue(`${at}${name}`, `${at}${name}: is given twice, under two names.`);
      seen.add(name);
      return [name, value[field]];
    }),
  );
}

function formed(value: unknown, form: Shape, at: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const fields = renamed(object(value), form, at);
  const changed: [string, unknown][] = [];
  for (const [name, { shape: inner, isList }] of form.inside) {
    const old = fields[name];
    if (old === undefined || old === null) continue;
    const now = isList ? formedList(old, inner, `${at}${name}`) : formed(old, inner, `${at}${name}.`);
    if (now !== old) changed.push([name, now]);
  }
  return changed.length > 0 ? { ...fields, ...Object.fromEntries(changed) } : fields;
}

function formedList(value: unknown, form: Shape, at: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value)) return [formed(value, form, `${at}[0].`)];
  const items: readonly unknown[] = value;
  const now = items.map((each, i) => formed(each, form, `${at}[${i}].`));
  return now.every((each, i) => each === items[i]) ? value : now;
}

export const formedRequest = (value: unknown): unknown => formed(value, request, "");
export const formedCount = (value: unknown): unknown => formed(value, countRequest, "");
export const formedThinking = (value: unknown): JsonObject => object(formed(value, thinkingConfig, ""));
export const formedSchema = (value: unknown, at: string): JsonObject => object(renamed(object(value), schema, at));
