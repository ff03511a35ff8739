import { byteLength, type JsonObject, list, object, text } from "#formats";
import { type ResponseIdentity, type StreamWriter } from "../converter.ts";
import { callDelta, callTracker } from "../tool-calls.ts";
import {
  candidateOf,
  contentOf,
  includesThoughts,
  logprobsFromChat,
  type ToolCall,
  textParts,
} from "./convert-response-from-chat.ts";
import { indexOf } from "./convert-response-to-chat.ts";
import { convertUsageFromChat } from "./convert-usage.ts";
import { toolCallId } from "./prepare-tools.ts";
import { signatureOf } from "./reasoning.ts";
import { type StreamFraming } from "./stream-framing.ts";

interface Candidate {
  readonly calls: (ToolCall & { name: string; args: string; signature: string })[];
  readonly tracker: ReturnType<typeof callTracker>;
  finishReason: unknown;
  hasRefusal: boolean;
}

/** Text is written as it comes; tool calls, which the format has only whole, and finish reasons with the last event. */
export const convertStreamFromChat =
  (framing: StreamFraming) =>
  (identity: ResponseIdentity, request: JsonObject): StreamWriter => {
    const { frame, end } = framing();
    const withThoughts = includesThoughts(request);
    const candidates = new Map<number, Candidate>();
    let usage: unknown;
    let bytes = 0;

    const candidateAt = (index: number): Candidate => {
      const existing = candidates.get(index);
      if (existing) return existing;
      const tracker = callTracker((call) => toolCallId(identity.id, index, call));
      const candidate = { calls: [], tracker, finishReason: null, hasRefusal: false };
      candidates.set(index, candidate);
      return candidate;
    };

    const addCall = ({ calls, tracker }: Candidate, delta: JsonObject): void => {
      const { args, ...marks } = callDelta(delta);
      const { call: tracked } = tracker.of(marks);
      const call = (calls[tracked.call] ??= { id: text(tracked.id), name: "", args: "", signature: "" });
      if (call.name === "") {
        call.name = marks.name;
        bytes += byteLength(call.name);
      }
      call.args += args;
      call.signature ||= signatureOf(delta);
      bytes += byteLength(args);
    };

    const event = (fields: JsonObject): string =>
      frame({ ...fields, modelVersion: identity.model, responseId: identity.id });

    const addChoice = (choice: JsonObject, position: number): JsonObject[] => {
      const index = indexOf(choice, position);
      const candidate = candidateAt(index);
      const delta = object(choice["delta"]);
      for (const call of list(delta["tool_calls"])) addCall(candidate, call);
      candidate.hasRefusal ||= text(delta["refusal"]) !== "";
      candidate.finishReason = choice["finish_reason"] || candidate.finishReason;
      const parts = textParts(delta, withThoughts);
      if (parts.length === 0) return [];
      bytes += parts.reduce((sum, part) => sum + byteLength(part["text"]), 0);
      return [{ content: contentOf(parts), index, ...logprobsFromChat(choice["logprobs"]) }];
    };

    return {
      write(chunk) {
        if (chunk["usage"] != null) usage = chunk["usage"];
        const pieces = list(chunk["choices"]).flatMap(addChoice);
        return pieces.length > 0 ? event({ candidates: pieces }) : "";
      },
      usage: () => usage,
      outputBytes: () => bytes,
      end(estimate) {
        if (candidates.size === 0) candidateAt(0);
        const last = [...candidates].map(([index, { calls, finishReason, hasRefusal }]) => ({
          ...candidateOf([], calls, finishReason, hasRefusal),
          index,
        }));
        return event({ candidates: last, usageMetadata: convertUsageFromChat(usage, estimate) }) + end();
      },
    };
  };
