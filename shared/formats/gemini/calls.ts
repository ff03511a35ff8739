import { type Loose, object } from "../loose.ts";
import { given, text } from "./read.ts";

/** As deep as the maker's own reader of messages goes. */
const deepest = 100;

function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth < deepest && Object.values(value).every((each) => isShallow(each, depth + 1));
}

/** Arguments as the object that they should be; undefined for what is none. */
export function argsOf(args: unknown): Loose | undefined {
  if (typeof args !== "string") return isShallow(args) ? object(args) : undefined;
  if (!args.trim()) return {};
  try {
    const input: unknown = JSON.parse(args);
    if (typeof input === "object" && input !== null && !Array.isArray(input) && isShallow(input)) return object(input);
  } catch {
    // The model wrote it, or broke off.
  }
  return undefined;
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  readonly signature: string;
}

/** The parts for the calls of an answer; what is no call is told apart, for the format has no place for it. */
export function callParts(calls: readonly Call[]): { parts: Loose[]; malformed: string } {
  const parts: Loose[] = [];
  const malformed: string[] = [];
  for (const { id, name, args, signature } of calls) {
    const input = argsOf(args);
    if (input) parts.push(given({ functionCall: { id, name, args: input }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${text(args)})`);
  }
  return { parts, malformed: malformed.join(" ") };
}

/** Makers take back no more than 40 characters as the id of a tool call, and few signs. */
export const newCallId = (answerId: unknown, choice: number, call: number): string =>
  `call_${text(answerId)
    .replace(/[^\w-]/g, "_")
    .slice(-24)}_${choice}_${call}`;
