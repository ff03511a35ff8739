import { byteLength, type Loose, object } from "../loose.ts";
import type { Call } from "./calls.ts";
import { text } from "./read.ts";
import { signatureOf } from "./signature.ts";

const argumentsText = (args: unknown): string =>
  typeof args === "object" && args !== null ? JSON.stringify(args) : text(args);

/**
 * Gathers the tool calls of one choice, for the format has them only whole. Servers leave out the index, or give it to
 * several calls: a new id or name begins a call, as in `chatStream`.
 */
export function callCollector(newId: (call: number) => string) {
  const calls: { id: string; name: string; args: string; signature: string }[] = [];
  /** By the server's own index, or id where it gives none: the call that it means now. */
  const current = new Map<unknown, (typeof calls)[number]>();
  let bytes = 0;
  let last: unknown;

  return {
    add(delta: Loose): void {
      const { index } = delta;
      const id = text(delta["id"]);
      const given = object(delta["function"]);
      const name = text(given["name"]);
      const args = argumentsText(given["arguments"]);
      const key = index ?? (id || last);
      last = key;
      let call = current.get(key);
      if (call === undefined || (name !== "" && (id ? id !== call.id : index == null))) {
        call = { id: id || newId(calls.length), name: "", args: "", signature: "" };
        calls.push(call);
        current.set(key, call);
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
