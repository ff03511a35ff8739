import { invalidValue } from "#errors";
import { type JsonObject, object } from "#json";

/**
 * The provider accepts two spellings of each field (`cachedContent`, `cached_content`), and one object instead of a
 * list. Requests are normalized before any check and remain so: the provider gets exactly what was checked. Names that
 * the caller chose (arguments, results, properties of schemas) do not change.
 */
interface Shape {
  readonly names: ReadonlySet<string>;
  /** Keyed by the name in lower case without underscores. */
  readonly spellings: ReadonlyMap<string, string>;
  readonly inner: ReadonlyMap<string, Shape | readonly [Shape]>;
}

const spelling = (name: string): string => name.toLowerCase().replaceAll("_", "");

/** `inner` contains the fields whose values have a shape; `[shape]` stands for lists. */
function shape(names: string, inner: Readonly<Record<string, Shape | readonly [Shape]>> = {}): Shape {
  const all = [...names.split(" ").filter(Boolean), ...Object.keys(inner)];
  return {
    names: new Set(all),
    spellings: new Map(all.map((name) => [spelling(name), name])),
    inner: new Map(Object.entries(inner)),
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
const innerFields = {
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
const request = shape(fields, innerFields);
/** The body of `countTokens`: contents, or a complete request. */
const countRequest = shape(fields, { ...innerFields, generateContentRequest: request });
const embedRequest = shape("model taskType title outputDimensionality autoTruncate", { content });
const batchEmbedRequest = shape("", { requests: [embedRequest] });
const schema = shape(
  "type format title description nullable enum items maxItems minItems properties required minProperties " +
    "maxProperties minimum maximum minLength maxLength pattern example anyOf propertyOrdering default " +
    "additionalProperties prefixItems",
);

/** Longer than the longest spelling of a name. */
const longName = 64;

function nameOf(field: string, { names, spellings }: Shape): string {
  if (names.has(field) || field.length > longName) return field;
  return spellings.get(spelling(field)) ?? field;
}

/** Returns the same object if all of its fields have their canonical or unknown names. */
function rename(value: JsonObject, form: Shape, path: string): JsonObject {
  const fields = Object.keys(value);
  if (fields.every((field) => form.names.has(field))) return value;
  const names = fields.map((field) => nameOf(field, form));
  if (names.every((name, n) => name === fields[n])) return value;
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw invalidValue(`${path}${name}`, `${path}${name}: is given twice, under two names.`);
    seen.add(name);
  }
  return Object.fromEntries(fields.map((field, n) => [names[n] ?? field, value[field]]));
}

function normalize(value: unknown, form: Shape, path: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const fields = rename(object(value), form, path);
  const changed: [string, unknown][] = [];
  for (const [name, inner] of form.inner) {
    const old = fields[name];
    if (old === undefined || old === null) continue;
    const normalized =
      "names" in inner ? normalize(old, inner, `${path}${name}.`) : normalizeList(old, inner[0], `${path}${name}`);
    if (normalized !== old) changed.push([name, normalized]);
  }
  return changed.length > 0 ? { ...fields, ...Object.fromEntries(changed) } : fields;
}

function normalizeList(value: unknown, form: Shape, path: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value)) return [normalize(value, form, `${path}[0].`)];
  const items: readonly unknown[] = value;
  const normalized = items.map((each, i) => normalize(each, form, `${path}[${i}].`));
  return normalized.every((each, i) => each === items[i]) ? value : normalized;
}

export const formedRequest = (value: unknown): unknown => normalize(value, request, "");
export const formedCount = (value: unknown): unknown => normalize(value, countRequest, "");
export const formedEmbed = (value: unknown): unknown => normalize(value, embedRequest, "");
export const formedBatchEmbed = (value: unknown): unknown => normalize(value, batchEmbedRequest, "");
export const formedThinking = (value: unknown): JsonObject => object(normalize(value, thinkingConfig, ""));
export const formedSchema = (value: unknown, path: string): JsonObject => rename(object(value), schema, path);
