import { byteLength, type JsonObject, list, object, text } from "#formats";
import type { ResponseIdentity, StreamWriter } from "../converter.ts";
import { contentOf, indexOf, showsThoughts, wordParts } from "./answer.ts";
import { callCollector } from "./call-collector.ts";
import { callParts, newCallId } from "./calls.ts";
import type { Framing } from "./framing.ts";
import { geminiLogprobs } from "./logprobs.ts";
import { geminiFinish } from "./map-finish-reason.ts";
import { geminiUsage } from "./usage.ts";

interface Candidate {
  readonly calls: ReturnType<typeof callCollector>;
  finish: unknown;
  refusal: boolean;
}

/** Writes a generateContent stream from chat chunks: words as they come, calls and the end with the last event. */
export const streamFromChat =
  (framing: () => Framing) =>
  (ours: ResponseIdentity, request: JsonObject): StreamWriter => {
    const { frame, end } = framing();
    const thoughts = showsThoughts(request);
    const candidates = new Map<number, Candidate>();
    let usage: unknown;
    let bytes = 0;

    const candidateAt = (index: number): Candidate => {
      const known = candidates.get(index);
      if (known) return known;
      const begun = { calls: callCollector((call) => newCallId(ours.id, index, call)), finish: null, refusal: false };
      candidates.set(index, begun);
      return begun;
    };
    const event = (fields: JsonObject): string => frame({ ...fields, modelVersion: ours.model, responseId: ours.id });

    const pieceOf = (choice: JsonObject, position: number): JsonObject[] => {
      const index = indexOf(choice, position);
      const candidate = candidateAt(index);
      const delta = object(choice["delta"]);
      for (const call of list(delta["tool_calls"])) candidate.calls.add(call);
      candidate.refusal ||= text(delta["refusal"]) !== "";
      candidate.finish = choice["finish_reason"] || candidate.finish;
      const parts = wordParts(delta, thoughts);
      if (parts.length === 0) return [];
      bytes += parts.reduce((sum, part) => sum + byteLength(part["text"]), 0);
      return [{ content: contentOf(parts), index, ...geminiLogprobs(choice["logprobs"]) }];
    };
    const lastOf = ([index, { calls, finish, refusal }]: [number, Candidate]): JsonObject => {
      const { parts, malformed } = callParts(calls.calls());
      return { content: contentOf(parts), ...geminiFinish(finish, { refusal, malformed }), index };
    };

    return {
      write(chunk) {
        if (chunk["usage"] != null) usage = chunk["usage"];
        const pieces = list(chunk["choices"]).flatMap(pieceOf);
        return pieces.length > 0 ? event({ candidates: pieces }) : "";
      },
      usage: () => usage,
      outputBytes: () => [...candidates.values()].reduce((sum, { calls }) => sum + calls.bytes(), bytes),
      end(estimate) {
        if (candidates.size === 0) candidateAt(0);
        return event({ candidates: [...candidates].map(lastOf), usageMetadata: geminiUsage(usage, estimate) }) + end();
      },
    };
  };
