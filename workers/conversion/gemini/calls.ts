import { given, type JsonObject, text } from "#formats";
import { argumentsOf } from "../tool-calls.ts";

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  readonly signature: string;
}

/** The parts for the calls of an answer; what is no call is told apart, for the format has no place for it. */
export function callParts(calls: readonly Call[]): { parts: JsonObject[]; malformed: string } {
  const parts: JsonObject[] = [];
  const malformed: string[] = [];
  for (const { id, name, args, signature } of calls) {
    const input = argumentsOf(args);
    if (input) parts.push(given({ functionCall: { id, name, args: input }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${text(args)})`);
  }
  return { parts, malformed: malformed.join(" ") };
}

/** Providers take back no more than 40 characters as the id of a tool call, and few signs. */
export const newCallId = (answerId: unknown, choice: number, call: number): string =>
  `call_${text(answerId)
    .replace(/[^\w-]/g, "_")
    .slice(-24)}_${choice}_${call}`;
