import { byteLength, type JsonObject, text } from "#formats";
import type { ResponseIdentity } from "../converter.ts";
import { callDelta, callTracker } from "../tool-calls.ts";
import { newCallId, toolBlock } from "./answer.ts";
import type { Block, BlockWriter } from "./block-writer.ts";

interface Call extends Block {
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

/** Tool calls. A call is whole when its arguments are. */
export function callWriter(blocks: BlockWriter, ours: ResponseIdentity) {
  const tracker = callTracker((call) => newCallId(ours, call));
  const calls: Call[] = [];
  let bytes = 0;

  return {
    write(delta: JsonObject): string {
      const { name, args, ...marks } = callDelta(delta);
      const { call: tracked } = tracker.of({ ...marks, name });
      let call = calls[tracked.call];
      let begun = "";
      if (call === undefined) {
        call = newCall(text(tracked.id), name);
        calls.push(call);
        bytes += byteLength(name);
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
    count: tracker.count,
    bytes: () => bytes,
  };
}
