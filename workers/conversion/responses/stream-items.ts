import type { JsonObject } from "#formats";
import type { Emit } from "./events.ts";
import {
  type Call,
  callItem,
  messageItem,
  noArguments,
  reasoningItem,
  refusalPart,
  type Status,
  summaryPart,
  textPart,
} from "./items.ts";

/** One output item while it is streamed. What returns a string returns the text of the events that it makes. */
export interface StreamedItem {
  /** As it stands. */
  item(): JsonObject;
  close(status: Status): string;
}

interface Place {
  readonly id: string;
  readonly outputIndex: number;
}

const added = (emit: Emit, { outputIndex }: Place, item: JsonObject) =>
  emit("response.output_item.added", { output_index: outputIndex, item });
const itemDone = (emit: Emit, { outputIndex }: Place, item: JsonObject) =>
  emit("response.output_item.done", { output_index: outputIndex, item });

/** What the model says of its reasoning: one summary. */
export function openReasoning(emit: Emit, place: Place) {
  const at = { item_id: place.id, output_index: place.outputIndex, summary_index: 0 };
  let said = "";
  const item = () => reasoningItem(place.id, [summaryPart(said)]);
  return {
    begun:
      added(emit, place, reasoningItem(place.id, [])) +
      emit("response.reasoning_summary_part.added", { ...at, part: summaryPart("") }),
    write(delta: string): string {
      said += delta;
      return emit("response.reasoning_summary_text.delta", { ...at, delta });
    },
    item,
    close: () =>
      emit("response.reasoning_summary_text.done", { ...at, text: said }) +
      emit("response.reasoning_summary_part.done", { ...at, part: summaryPart(said) }) +
      itemDone(emit, place, item()),
  };
}

type PartKind = "text" | "refusal";

/** One part after the other: a part is done when one of the other kind begins. */
export function openMessage(emit: Emit, place: Place) {
  const closed: JsonObject[] = [];
  let kind: PartKind | undefined;
  let said = "";
  let logprobs: JsonObject[] = [];
  let status: Status = "in_progress";
  const at = () => ({ item_id: place.id, output_index: place.outputIndex, content_index: closed.length });
  const part = () => (kind === "refusal" ? refusalPart(said) : textPart(said, logprobs));
  const item = () => messageItem(place.id, status, kind === undefined ? closed : [...closed, part()]);

  const closePart = (): string => {
    if (kind === undefined) return "";
    const whole = part();
    const events =
      (kind === "refusal"
        ? emit("response.refusal.done", { ...at(), refusal: said })
        : emit("response.output_text.done", { ...at(), text: said, logprobs })) +
      emit("response.content_part.done", { ...at(), part: whole });
    closed.push(whole);
    kind = undefined;
    said = "";
    logprobs = [];
    return events;
  };
  const openPart = (wanted: PartKind): string => {
    if (kind === wanted) return "";
    const events = closePart();
    kind = wanted;
    return events + emit("response.content_part.added", { ...at(), part: part() });
  };

  return {
    begun: added(emit, place, item()),
    say(delta: string, probabilities: readonly JsonObject[]): string {
      const events = openPart("text");
      said += delta;
      for (const each of probabilities) logprobs.push(each);
      return events + emit("response.output_text.delta", { ...at(), delta, logprobs: probabilities });
    },
    refuse(delta: string): string {
      const events = openPart("refusal");
      said += delta;
      return events + emit("response.refusal.delta", { ...at(), delta });
    },
    item,
    close(last: Status): string {
      const events = closePart();
      status = last;
      return events + itemDone(emit, place, item());
    },
  };
}

export function openCall(emit: Emit, place: Place, call: Omit<Call, "input">) {
  const event = call.isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const at = { item_id: place.id, output_index: place.outputIndex };
  let input = "";
  let status: Status = "in_progress";
  const item = () => callItem(place.id, status, { ...call, input });
  const write = (delta: string): string => {
    if (delta === "") return "";
    input += delta;
    return emit(`${event}.delta`, { ...at, delta });
  };
  return {
    begun: added(emit, place, item()),
    write,
    item,
    close(last: Status): string {
      const filled = input === "" && !call.isCustom ? write(noArguments) : "";
      const done = emit(`${event}.done`, {
        ...at,
        ...(call.isCustom ? { input } : { name: call.name, arguments: input }),
      });
      status = last;
      return filled + done + itemDone(emit, place, item());
    },
  };
}
