import { expect } from "vitest";
import type { RecordedRequest } from "../clients/recording.ts";
import { assemble } from "./formats-responses-assemble.ts";
import { eventsOf } from "./native-stream-events.ts";

type Loose = Readonly<Record<string, never>>;

/** The usage that a response reports. */
export type Counted =
  | { readonly input: number; readonly output: number }
  | { readonly images: number }
  | { readonly characters: number };

export const sum = (usage: Readonly<Record<string, number>> | undefined, ...names: string[]): number =>
  names.reduce((total, name) => total + (usage?.[name] ?? 0), 0);

/** The usage of a paid response, by the path after `/v1/`. */
const usages: Readonly<Record<string, (answer: Loose) => Counted>> = {
  "chat/completions": ({ usage }) => ({
    input: sum(usage, "prompt_tokens"),
    output: sum(usage, "completion_tokens"),
  }),
  responses: ({ usage }) => ({ input: sum(usage, "input_tokens"), output: sum(usage, "output_tokens") }),
  messages: ({ usage }) => ({
    input: sum(usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    output: sum(usage, "output_tokens"),
  }),
  gemini: ({ usageMetadata }) => ({
    input: sum(usageMetadata, "promptTokenCount", "toolUsePromptTokenCount"),
    output: sum(usageMetadata, "candidatesTokenCount", "thoughtsTokenCount"),
  }),
  embeddings: ({ usage }) => ({ input: sum(usage, "prompt_tokens"), output: 0 }),
  "images/generations": ({ data }: { data?: readonly unknown[] }) => ({ images: data?.length ?? 0 }),
};

/** The part of a whole stream that has its usage. */
const streams: Readonly<Record<string, (text: string) => object | undefined>> = {
  "chat/completions": (text) => {
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    return eventsOf({ format: "chat", name: "chat" }, text).at(-1);
  },
  responses: (text) => assemble(eventsOf({ format: "responses", name: "responses" }, text)),
  messages: (text) => {
    const events = eventsOf({ format: "messages", name: "messages" }, text);
    expect([events[0]?.["type"], events.at(-1)?.["type"]]).toEqual(["message_start", "message_stop"]);
    return events.at(-2);
  },
  gemini: (text) => eventsOf({ format: "gemini", name: "gemini" }, text).at(-1),
};

const nameOf = (path: string): string =>
  /:(?:streamGenerate|generate|embed)Content/.test(path) ? "gemini" : (/^\/v1\/(.*?)(?:\?|$)/.exec(path)?.[1] ?? path);

/** Reads nothing from refusals and other free responses. Fails on malformed ones. */
export function usageIn({ method, path, body, status }: RecordedRequest, text: string): Counted | undefined {
  const usage = method === "POST" ? usages[nameOf(path)] : undefined;
  const { stream, input } = (body ?? {}) as { stream?: boolean; input?: unknown };
  const isStream = stream === true || path.includes("alt=sse");
  if (status !== 200) {
    expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String) as string } });
    return undefined;
  }
  if (nameOf(path) === "audio/speech") return { characters: Array.from(String(input)).length };
  const answer = isStream ? streams[nameOf(path)]?.(text) : (JSON.parse(text) as object);
  return usage?.(answer as Loose);
}
