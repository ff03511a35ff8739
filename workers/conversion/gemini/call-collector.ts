import { byteLength, type JsonObject, text } from "#formats";
import { callDelta, callTracker } from "../tool-calls.ts";
import type { Call } from "./calls.ts";
import { signatureOf } from "./signature.ts";

/** Gathers the tool calls of one choice, for the format has them only whole. */
export function callCollector(newId: (call: number) => string) {
  const calls: { id: string; name: string; args: string; signature: string }[] = [];
  const tracker = callTracker(newId);
  let bytes = 0;

  return {
    add(delta: JsonObject): void {
      const { name, args, ...marks } = callDelta(delta);
      const { call: tracked } = tracker.of({ ...marks, name });
      let call = calls[tracked.call];
      if (call === undefined) {
        call = { id: text(tracked.id), name: "", args: "", signature: "" };
        calls.push(call);
      }
      if (call.name === "") {
        call.name = name;
        bytes += byteLength(name);
      }
      call.args += args;
      call.signature ||= signatureOf(delta);
      bytes += byteLength(args);
    },
    calls: (): readonly Call[] => calls,
    bytes: (): number => bytes,
  };
}
