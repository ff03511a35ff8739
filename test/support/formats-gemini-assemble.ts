import { expect } from "vitest";

export type Json = Readonly<Record<string, unknown>>;
export interface Part {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: Json;
}
interface Candidate {
  readonly content: { readonly parts: readonly Part[]; readonly role: string };
  readonly index: number;
  readonly finishReason?: string;
}
export interface Answer {
  readonly candidates: readonly Candidate[];
  readonly usageMetadata?: Json;
  readonly modelVersion: string;
  readonly responseId: string;
}

export const identity = { model: "local/chat", created: 1_700_000_000, id: "req_abc" };
export const estimate = { input: 7, output: 9 };
export const showThoughts = { generationConfig: { thinkingConfig: { includeThoughts: true } } };
export const google = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } });
/** Accepts only frames of one `data` line each, without an end marker, like the official client. */
export const framesOf = (text: string): Answer[] =>
  text
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      expect(frame).toMatch(/^data: \{.*\}$/);
      return JSON.parse(frame.slice("data: ".length)) as Answer;
    });

/** Joins adjacent pieces of one kind; an end without text has an empty part. */
function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (last?.text !== undefined && part.text !== undefined && last.thought === part.thought)
      all.splice(-1, 1, { ...last, ...part, text: last.text + part.text });
    else all.push(part);
  }
  return all.filter((part) => part.text !== "" || part.thoughtSignature);
}

/** Returns the client's final response. */
export function assemble(events: readonly Answer[]): Json {
  const candidates = new Map<number, { parts: Part[]; finishReason?: string | undefined }>();
  let usageMetadata: Json | undefined;
  for (const event of events) {
    expect(event).toMatchObject({ modelVersion: identity.model, responseId: identity.id });
    for (const { content, index, finishReason } of event.candidates) {
      expect(content.role).toBe("model");
      expect(content.parts.length).toBeGreaterThan(0);
      const of = candidates.get(index) ?? { parts: [] };
      candidates.set(index, { parts: [...of.parts, ...content.parts], finishReason });
    }
    usageMetadata = event.usageMetadata ?? usageMetadata;
  }
  const all = [...candidates].toSorted(([a], [b]) => a - b);
  return {
    candidates: all.map(([index, { parts, ...rest }]) => ({ index, parts: joined(parts), ...rest })),
    usageMetadata,
  };
}
