import { type Cut, callsFor, type MockTool, sampleOf, textsOf, wordsOf } from "./mock-model.ts";
import { mockPng } from "./mock-openai-media.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of the usual generateContent answer that a test may script. */
export interface ContentScript {
  /** The text of the last part. */
  readonly text?: string;
  /** All parts of each candidate, in place of the default ones. A stream sends texts in parts. */
  readonly parts?: readonly Fields[];
  readonly finishReason?: string;
  /** Blocks the prompt, so there is no candidate. */
  readonly blockReason?: string;
  /** Overrides fields of the default usage; `false` omits it. */
  readonly usage?: Fields | false;
}

const mockThought = "Let me think about it.";
export const mockSignature = "c2lnbmF0dXJl";
/** A tenth of a second of silence: 16 bits, one channel, 24 kHz. */
export const mockPcm = Buffer.alloc(4_800);

/** The provider reads fields under both names. */
const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const field = (from: unknown, name: string): unknown =>
  Object.entries((from ?? {}) as Fields).find(([key]) => camel(key) === name)?.[1];
const list = (value: unknown) => (Array.isArray(value) ? value : value == null ? [] : [value]) as readonly Fields[];

/** All texts of a request, in its order. */
export const wordsIn = (request: unknown): string =>
  [field(request, "systemInstruction"), ...list(field(request, "contents"))]
    .flatMap((content) => textsOf(field(content, "parts")))
    .join(" ");

/** The generateContent response for a request. */
export function answerOf(model: string, request: Fields, script: ContentScript) {
  const config = field(request, "generationConfig");
  const common = { modelVersion: model, responseId: "mock-response" };
  const prompt = wordsOf(wordsIn(request)).length;
  const { blockReason, usage = {} } = script;
  if (blockReason !== undefined) {
    const usageMetadata = { promptTokenCount: prompt, totalTokenCount: prompt };
    return { promptFeedback: { blockReason }, ...(usage && { usageMetadata }), ...common };
  }
  const usual = partsFor(request, config, script);
  const { parts = usual.parts, finishReason = usual.finishReason } = script;
  const count = Number(field(config, "candidateCount") ?? 1);
  return {
    candidates: Array.from({ length: count }, (_, index) => ({
      content: { parts, role: "model" },
      finishReason,
      index,
    })),
    ...(usage && { usageMetadata: { ...usageOf(prompt, parts, count), ...usage } }),
    ...common,
  };
}

function usageOf(prompt: number, parts: readonly Fields[], count: number): Fields {
  const tokens = ({ text, ...rest }: Fields) => wordsOf(typeof text === "string" ? text : JSON.stringify(rest)).length;
  const said = (thoughts: boolean) =>
    parts.reduce((sum, part) => sum + ((part["thought"] === true) === thoughts ? tokens(part) : 0), 0);
  const candidates = said(false) * count;
  const thoughts = said(true);
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + candidates + thoughts,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: prompt }],
  };
}

function partsFor(request: Fields, config: unknown, script: ContentScript) {
  const modalities = list(field(config, "responseModalities")) as readonly unknown[];
  const inline = (mimeType: string, bytes: Buffer) => ({
    parts: [{ inlineData: { mimeType, data: bytes.toString("base64") } }],
    finishReason: "STOP",
  });
  if (modalities.includes("IMAGE")) return inline("image/png", mockPng);
  if (modalities.includes("AUDIO")) return inline("audio/L16;codec=pcm;rate=24000", mockPcm);
  const calls = script.text === undefined ? toolCalls(request) : [];
  if (calls.length > 0) return { parts: [...thoughtsFor(config), ...calls], finishReason: "STOP" };
  const { text, finishReason } = stopped(config, script.text ?? textFor(request, config));
  return { parts: [...thoughtsFor(config), { text }], finishReason };
}

function thoughtsFor(config: unknown): readonly Fields[] {
  const thinking = field(config, "thinkingConfig");
  const isAsked = field(thinking, "includeThoughts") === true && field(thinking, "thinkingBudget") !== 0;
  return isAsked ? [{ text: mockThought, thought: true }] : [];
}

const lastParts = (request: Fields) => list(field(list(field(request, "contents")).at(-1), "parts"));
const resultsIn = (request: Fields) => lastParts(request).flatMap((part) => list(field(part, "functionResponse")));

function textFor(request: Fields, config: unknown): string {
  const schema = field(config, "responseJsonSchema") ?? field(config, "responseSchema");
  if (schema !== undefined) return JSON.stringify(sampleOf(plain(schema)));
  if (field(config, "responseMimeType") === "application/json") return '{"said":"mock"}';
  const results = resultsIn(request);
  if (results.length > 0) return `The tool said: ${results.map(({ response }) => JSON.stringify(response)).join(" ")}`;
  return `You said: ${textsOf(lastParts(request)).join(" ")}`;
}

/** Each word is a token. */
function stopped(config: unknown, text: string) {
  const sequences = list(field(config, "stopSequences")) as readonly unknown[];
  const sequence = sequences.find((each) => typeof each === "string" && text.includes(each));
  if (typeof sequence === "string") return { text: text.slice(0, text.indexOf(sequence)), finishReason: "STOP" };
  const words = wordsOf(text);
  const cap = Number(field(config, "maxOutputTokens") ?? Number.POSITIVE_INFINITY);
  return words.length > cap
    ? { text: words.slice(0, cap).join(""), finishReason: "MAX_TOKENS" }
    : { text, finishReason: "STOP" };
}

/** A schema with the types in lower case. */
const plain = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "type" && typeof value === "string" ? value.toLowerCase() : value,
  );

function toolCalls(request: Fields): readonly Fields[] {
  if (resultsIn(request).length > 0) return [];
  const declared = list(field(request, "tools")).flatMap((tool) => list(field(tool, "functionDeclarations")));
  const tools = declared.map((each): MockTool => {
    const schema = plain(field(each, "parametersJsonSchema") ?? field(each, "parameters") ?? {});
    return { name: String(each["name"]), schema };
  });
  const choice = field(field(request, "toolConfig"), "functionCallingConfig");
  const mode = field(choice, "mode");
  if (mode === "NONE") return [];
  const [name] = list(field(choice, "allowedFunctionNames")) as readonly unknown[];
  const calls = callsFor(tools, textsOf(lastParts(request)).join(" "), mode === "ANY" ? { name } : undefined);
  return calls.map((call, index) => ({
    functionCall: { id: `call-${index}`, name: call.name, args: call.input },
    // The first of parallel calls is signed.
    ...(index === 0 && { thoughtSignature: mockSignature }),
  }));
}

/** The stream of a response: an event for each word or call; the last one has the finish reason. */
export function contentEvents(answer: Fields, cut: Cut = wordsOf): readonly Fields[] {
  const { candidates, usageMetadata, ...common } = answer;
  if (candidates === undefined) return [answer];
  const all = candidates as readonly {
    readonly content: Fields;
    readonly index: number;
  }[];
  const pieces = list(all[0]?.content["parts"]).flatMap((part) => piecesOf(part, cut));
  return pieces.map((piece, at) => ({
    candidates: all.map(({ content, index, ...end }) => ({
      content: { ...content, parts: [piece] },
      ...(at === pieces.length - 1 && end),
      index,
    })),
    ...(usageMetadata !== undefined && {
      usageMetadata: at === pieces.length - 1 ? usageMetadata : begun(usageMetadata),
    }),
    ...common,
  }));
}

const begun = (usage: unknown) => {
  const { promptTokenCount } = usage as Fields;
  return { promptTokenCount, totalTokenCount: promptTokenCount };
};

function piecesOf(part: Fields, cut: Cut): readonly Fields[] {
  const { text, ...rest } = part;
  return typeof text === "string" && text !== "" ? cut(text).map((piece) => ({ text: piece, ...rest })) : [part];
}
