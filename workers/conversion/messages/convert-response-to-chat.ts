import { given, type JsonObject, list, object, text } from "#formats";
import { stringifyArguments } from "../tool-calls.ts";
import { convertUsageToChat } from "./convert-usage.ts";
import { mapStopReason } from "./map-finish-reason.ts";
import { blocksToDetails } from "./reasoning.ts";

/** The provider's explanation of a refusal. */
export const explanationOf = (stop: JsonObject): string => text(object(stop["stop_details"])["explanation"]);

/** A Messages answer as a chat answer. */
export function convertResponseToChat(answer: JsonObject): JsonObject {
  const blocks = list(answer["content"]);
  const join = (type: string, field: string) =>
    blocks
      .filter((block) => block["type"] === type)
      .map((block) => text(block[field]))
      .join("");
  const calls = blocks.filter((block) => block["type"] === "tool_use");
  const details = blocksToDetails(blocks);
  return given({
    id: answer["id"],
    object: "chat.completion",
    model: answer["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: join("text", "text") || null,
          refusal: explanationOf(answer) || null,
          ...given({ reasoning_content: join("thinking", "thinking") || undefined }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(calls.length > 0 && {
            tool_calls: calls.map((call) => ({
              id: text(call["id"]),
              type: "function",
              function: { name: text(call["name"]), arguments: stringifyArguments(call["input"]) },
            })),
          }),
        },
        ...mapStopReason(answer),
      },
    ],
    usage: convertUsageToChat(answer["usage"]),
  });
}
