import type { Ours } from "../dialect.ts";
import { byteLength, type Loose, object } from "../loose.ts";
import { newCallId, toolBlock } from "./answer.ts";
import type { Block, BlockWriter } from "./block-writer.ts";
import { text } from "./read.ts";

interface Call extends Block {
  readonly id: string;
  args: string;
}

function isJson(args: string): boolean {
  // The cheap test spares long arguments from being parsed for each piece.
  if (!["}", "]"].includes(args.trimEnd().at(-1) ?? "")) return false;
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}

function newCall(id: string, name: string): Call {
  let seen = 0;
  let isWhole = false;
  const call: Call = {
    id,
    start: toolBlock(id, name, {}),
    args: "",
    isReady: name !== "",
    isWhole() {
      if (seen !== call.args.length) isWhole = isJson(call.args);
      seen = call.args.length;
      return isWhole;
    },
  };
  return call;
}

const argumentsText = (args: unknown): string =>
  typeof args === "object" && args !== null ? JSON.stringify(args) : text(args);

/**
 * Tool calls. Servers leave out the index, or give it to several calls: a new id or name begins a call, as in
 * `chatStream`. A call is whole when its arguments are.
 */
export function callWriter(blocks: BlockWriter, ours: Ours) {
  /** By the server's own index, or id where it gives none: the call that it means now. */
  const current = new Map<unknown, Call>();
  let count = 0;
  let bytes = 0;
  let last: unknown;

  return {
    write(delta: Loose): string {
      const { index } = delta;
      const id = text(delta["id"]);
      const given = object(delta["function"]);
      const name = text(given["name"]);
      const args = argumentsText(given["arguments"]);
      const key = index ?? (id || last);
      last = key;
      let call = current.get(key);
      let begun = "";
      if (call === undefined || (name !== "" && (id ? id !== call.id : index == null))) {
        call = newCall(id || newCallId(ours, count), name);
        count++;
        bytes += byteLength(name);
        current.set(key, call);
        begun = blocks.begin(call);
      } else if (name !== "" && !call.isReady) {
        call.start = { ...call.start, name };
        call.isReady = true;
        bytes += byteLength(name);
      }
      if (!args) return begun;
      call.args += args;
      bytes += byteLength(args);
      return begun + blocks.say(call, { type: "input_json_delta", partial_json: args });
    },
    count: () => count,
    bytes: () => bytes,
  };
}
