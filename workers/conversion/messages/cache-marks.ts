import { estimatedBytesPerToken } from "#formats";
import { byteLength, type JsonObject, list, object, text } from "#json";

/**
 * Where the marks of `prompt_cache: auto` go, at most three of the provider's four: the end of the system prompt, which the
 * tools precede, for other conversations; the end of the last message, from which the next turn reads; and the end of the
 * user's message before, where the last turn wrote, because the provider looks back only 20 blocks from a mark.
 */

const mark = { cache_control: { type: "ephemeral" } };

/** Blocks that may have a mark. Thinking may not, nor an empty text. */
const markedTypes: ReadonlySet<unknown> = new Set(["image", "document", "search_result", "tool_use", "tool_result"]);
const mayBeMarked = (block: JsonObject): boolean =>
  block["type"] === "text" ? text(block["text"]) !== "" : markedTypes.has(block["type"]);

/** Returns what is left of so many bytes after the names and texts inside, and stops at zero. */
function bytesLeft(value: unknown, left: number): number {
  if (typeof value === "string") return left - byteLength(value);
  if (typeof value !== "object" || value === null) return left;
  for (const name in value) {
    if (left <= 0) break;
    left = bytesLeft(object(value)[name], Array.isArray(value) ? left : left - name.length);
  }
  return left;
}

/** Marks the last of the content's blocks that may have a mark, if there is one. */
function markedContent(content: unknown): unknown {
  if (typeof content === "string") return content === "" ? content : [{ type: "text", text: content, ...mark }];
  const blocks = list(content);
  const last = blocks.findLastIndex(mayBeMarked);
  return last < 0 ? content : blocks.map((block, b) => (b === last ? { ...block, ...mark } : block));
}

function markedTools(tools: unknown): unknown {
  const all = list(tools);
  // The provider refuses a mark on a tool that is loaded later.
  const last = all.findLastIndex(({ defer_loading }) => defer_loading !== true);
  return all.map((tool, t) => (t === last ? { ...tool, ...mark } : tool));
}

function markedMessages(messages: readonly JsonObject[]): readonly JsonObject[] {
  const answer = messages.findLastIndex(({ role }, m) => role === "assistant" && m < messages.length - 1);
  const before = messages.findLastIndex(({ role }, m) => role === "user" && m < answer);
  return messages.map((message, m) =>
    m === before || m === messages.length - 1 ? { ...message, content: markedContent(message["content"]) } : message,
  );
}

/**
 * Adds marks to a Messages request that has none. A prefix that is shorter than the provider's minimum, by our estimate, gets
 * none.
 */
export function addCacheMarks(request: JsonObject, minTokens: number): JsonObject {
  const { tools, system, messages } = request;
  const ofPrefix = bytesLeft([tools, system], minTokens * estimatedBytesPerToken);
  if (ofPrefix > 0 && bytesLeft(messages, ofPrefix) > 0) return request;
  const prefix =
    ofPrefix > 0
      ? {}
      : byteLength(system) > 0 || list(system).some(mayBeMarked)
        ? { system: markedContent(system) }
        : { tools: markedTools(tools) };
  return { ...request, ...prefix, messages: markedMessages(list(messages)) };
}
