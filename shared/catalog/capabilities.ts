import type { Feature, Format } from "#formats";
import { fieldSchema, type JsonSchema } from "./input.ts";
import type { ModelEntry, UpstreamEntry } from "./schema.ts";
import { type Effort, type Modality, modalities, type Parameter, parameters, type Task } from "./types.ts";

const partModalities = ["image", "file", "audio"] as const satisfies readonly (Feature & Modality)[];

const outputOf = {
  images: ["image"],
  speech: ["audio"],
  transcription: ["text"],
  video: ["video"],
  music: ["audio"],
  moderation: ["moderation"],
  rerank: ["rerank"],
} as const satisfies Record<Task, readonly Modality[]>;

const inOrder = (found: ReadonlySet<Modality>): readonly Modality[] => modalities.filter((each) => found.has(each));

/** Returns the schema and the nested schemas that a value of the field, or one of its items, may match. */
function alternatives(schema: JsonSchema | undefined): readonly JsonSchema[] {
  if (schema === undefined) return [];
  const inner = [schema["anyOf"], schema["items"]].flat().filter((each) => typeof each === "object" && each !== null);
  return [schema, ...inner.flatMap((each) => alternatives(each as JsonSchema))];
}

const takesUpload = (schema: JsonSchema, field: string): boolean =>
  alternatives(fieldSchema(schema, field)).some(({ pattern }) => typeof pattern === "string" && /upl_/.test(pattern));

function mediaInputs({ units }: ModelEntry, schema: JsonSchema): ReadonlySet<Modality> {
  const found = new Set<Modality>();
  const recording = units.minute && "minutes_of" in units.minute ? units.minute.minutes_of : undefined;
  for (const field of Object.keys(schema["properties"] ?? {})) {
    if (field === "prompt" || field === "text") found.add("text");
    if (field === recording) found.add("audio");
    else if (takesUpload(schema, field) || units.input_image?.items_of.includes(field)) found.add("image");
  }
  return found;
}

export function inputModalities(entry: ModelEntry): readonly Modality[] {
  if (entry.input_schema !== undefined) return inOrder(mediaInputs(entry, entry.input_schema));
  return inOrder(new Set(["text", ...partModalities.filter((kind) => entry.features.includes(kind))]));
}

export function outputModalities({ type, task, features }: ModelEntry): readonly Modality[] {
  if (type === "embeddings") return ["embeddings"];
  if (task !== undefined) return outputOf[task];
  return features.includes("audio_output") ? ["text", "audio"] : ["text"];
}

/** The format of a provider whose upstreams do not name theirs; null for those that do or have no text. */
const fixedFormats: Readonly<Record<UpstreamEntry["provider"], Format | null>> = {
  openai: null,
  anthropic: "messages",
  gemini: "gemini",
  azure: null,
  bedrock: null,
  vertex: null,
  replicate: null,
  fal: null,
  local: null,
};

/** Parameters of a chat request that a conversion loses: docs/conversion-matrix.md. */
const lostIn = {
  chat: [],
  messages: ["seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "web_search_options"],
  responses: ["stop", "seed", "frequency_penalty", "presence_penalty", "web_search_options"],
  gemini: ["parallel_tool_calls", "web_search_options"],
} as const satisfies Record<Format, readonly Parameter[]>;

const featureOf: Partial<Record<Parameter, Feature>> = {
  tools: "tools",
  tool_choice: "tools",
  parallel_tool_calls: "tools",
  response_format: "json",
  structured_outputs: "json",
  logprobs: "logprobs",
  top_logprobs: "logprobs",
  web_search_options: "web_search",
};

type Serving = ModelEntry["upstreams"][number];

/** Returns the parameters of a chat request that an upstream does not accept for the model. */
function lostAt({ formats }: Serving, upstream: UpstreamEntry): ReadonlySet<string> {
  const spoken: readonly Format[] = formats ?? upstream.formats;
  const format = fixedFormats[upstream.provider] ?? (spoken.includes("chat") ? "chat" : (spoken[0] ?? "chat"));
  return new Set([
    ...lostIn[format],
    ...upstream.unsupported_parameters,
    ...(format === "chat" ? (upstream.quirks?.refused_fields ?? []) : []),
  ]);
}

/** Returns the parameters that every upstream of the model accepts: those of a chat request, or of its input schema. */
export function supportedParameters(
  entry: ModelEntry,
  upstreams: Readonly<Record<string, UpstreamEntry>>,
): readonly string[] {
  if (entry.input_schema !== undefined) return Object.keys(entry.input_schema["properties"] ?? {});
  if (entry.type !== "text") return [];
  const lost = entry.upstreams.map((serving) => lostAt(serving, upstreams[serving.upstream] as UpstreamEntry));
  return parameters.filter((parameter) => {
    if (entry.unsupported_parameters.includes(parameter) || lost.some((each) => each.has(parameter))) return false;
    if (parameter === "reasoning_effort") return (entry.reasoning?.efforts.length ?? 0) > 0;
    const feature = featureOf[parameter];
    return feature === undefined || (entry.features as readonly Feature[]).includes(feature);
  });
}

/** The names are those of OpenRouter's list. Null for a model that does not reason. */
export interface Reasoning {
  /** Set if no effort turns reasoning off. */
  readonly mandatory: boolean;
  /** Values of `reasoning_effort` that make a difference. Empty if the effort cannot be chosen. */
  readonly supported_efforts: readonly Effort[];
  /** The effort of a call that specifies none, if the provider documents it. */
  readonly default_effort: Effort | null;
}

export const reasoningOf = ({ reasoning }: ModelEntry): Reasoning | null =>
  reasoning === undefined
    ? null
    : {
        mandatory: !reasoning.efforts.includes("none"),
        supported_efforts: reasoning.efforts,
        default_effort: reasoning.default ?? null,
      };
