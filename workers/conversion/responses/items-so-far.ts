import { isObject, type JsonObject, list, text } from "#json";

/** Where the deltas of each event go: the list of parts and the part's field, or the item's own field. */
const deltas: Readonly<Record<string, { readonly parts?: "content" | "summary"; readonly field: string }>> = {
  "response.output_text.delta": { parts: "content", field: "text" },
  "response.refusal.delta": { parts: "content", field: "refusal" },
  "response.reasoning_text.delta": { parts: "content", field: "text" },
  "response.reasoning_summary_text.delta": { parts: "summary", field: "text" },
  "response.function_call_arguments.delta": { field: "arguments" },
  "response.custom_tool_call_input.delta": { field: "input" },
};
/** A provider cannot make us allocate more. */
const maxIndex = 10_000;

type Item = Record<string, unknown>;

/** Collects the output of a provider's stream, to show what there was of a response that ended early. */
export function collectItems() {
  const items: (Item | undefined)[] = [];

  const indexIn = (event: JsonObject, field: string): number => {
    const index = event[field];
    return typeof index === "number" && Number.isInteger(index) && index >= 0 && index < maxIndex ? index : -1;
  };

  function partOf(item: Item, event: JsonObject, parts: "content" | "summary"): Item | undefined {
    const index = indexIn(event, parts === "content" ? "content_index" : "summary_index");
    if (index < 0) return undefined;
    const held = Array.isArray(item[parts]) ? (item[parts] as Item[]) : [];
    item[parts] = held;
    held[index] ??= {};
    return held[index];
  }

  return {
    note(event: JsonObject): void {
      const type = text(event["type"]);
      const at = indexIn(event, "output_index");
      if (at < 0) return;
      if (type === "response.output_item.added" || type === "response.output_item.done") {
        if (isObject(event["item"])) items[at] = { ...event["item"] };
        return;
      }
      const item = items[at];
      if (!item) return;
      if (type === "response.content_part.added" || type === "response.reasoning_summary_part.added") {
        const part = partOf(item, event, type === "response.content_part.added" ? "content" : "summary");
        if (part && isObject(event["part"])) Object.assign(part, event["part"]);
        return;
      }
      const { parts, field } = deltas[type] ?? {};
      const holder = parts ? partOf(item, event, parts) : item;
      if (field !== undefined && holder) holder[field] = text(holder[field]) + text(event["delta"]);
    },
    items: (): JsonObject[] =>
      items.flatMap((item) => {
        if (!item) return [];
        const { content, summary, status, ...rest } = item;
        return [
          {
            ...rest,
            ...(status !== undefined && { status: status === "in_progress" ? "incomplete" : status }),
            ...(content !== undefined && { content: list(content) }),
            ...(summary !== undefined && { summary: list(summary) }),
          },
        ];
      }),
  };
}
