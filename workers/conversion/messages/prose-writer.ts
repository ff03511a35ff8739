import { byteLength, type JsonObject, text } from "#formats";
import { textBlock } from "./answer.ts";
import type { Block, BlockWriter } from "./block-writer.ts";
import { redactedBlock, thinkingBlock } from "./reasoning.ts";

interface Prose extends Block {
  readonly kind: "text" | "thinking" | "redacted_thinking";
  said: string;
  isDone: boolean;
}

/** Text and thinking: a block goes on until another begins. */
export function proseWriter(blocks: BlockWriter) {
  let last: Prose | undefined;
  let bytes = 0;

  const begin = (kind: Prose["kind"], start: JsonObject): { prose: Prose; begun: string } => {
    const prose: Prose = { kind, start, said: "", isDone: false, isReady: true, isWhole: () => true };
    last = prose;
    return { prose, begun: blocks.begin(prose) };
  };
  const current = (kind: Prose["kind"]): Prose | undefined =>
    last?.kind === kind && !last.isDone && blocks.last() === last ? last : undefined;
  const into = (kind: "text" | "thinking"): { prose: Prose; begun: string } => {
    const prose = current(kind);
    if (prose) return { prose, begun: "" };
    return begin(kind, kind === "text" ? textBlock("") : thinkingBlock("", ""));
  };

  const think = (thinking: string): string => {
    if (!thinking) return "";
    bytes += byteLength(thinking);
    const { prose, begun } = into("thinking");
    prose.said += thinking;
    return begun + blocks.say(prose, { type: "thinking_delta", thinking });
  };
  /** Clients take a signature whole, as the last of its block. */
  const sign = (signature: string): string => {
    if (!signature) return "";
    const { prose, begun } = into("thinking");
    prose.isDone = true;
    return begun + blocks.say(prose, { type: "signature_delta", signature });
  };

  return {
    think,
    say(said: string): string {
      if (!said) return "";
      bytes += byteLength(said);
      const { prose, begun } = into("text");
      return begun + blocks.say(prose, { type: "text_delta", text: said });
    },
    /** State, whole or in pieces. `reasoned`: its text came beside it. */
    detail(detail: JsonObject, reasoned: boolean): string {
      if (detail["type"] === "reasoning.encrypted")
        return begin("redacted_thinking", redactedBlock(text(detail["data"]))).begun;
      const said = text(detail["text"]);
      const signature = text(detail["signature"]);
      const isSaid = reasoned || (signature !== "" && current("thinking")?.said === said);
      return (isSaid ? "" : think(said)) + sign(signature);
    },
    bytes: () => bytes,
  };
}
