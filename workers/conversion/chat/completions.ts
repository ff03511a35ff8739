import { completionsToChat, outputBytes } from "#formats";
import { type JsonObject, list, object, text } from "#json";
import type { FormatConverter, ResponseIdentity, StreamWriter } from "../converter.ts";
import { completeUsage } from "./complete-chat.ts";
import { indexOf } from "./fields.ts";
import { chatConverter } from "./index.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

const idOf = ({ id }: ResponseIdentity): string => id.replace(/^chatcmpl-/, "cmpl-");

/** Accepts a whole message or a stream's delta. Reasoning is not part of the text. */
const choiceOf = (choice: JsonObject, position: number, message: JsonObject) => ({
  text: text(message["content"]) + text(message["refusal"]),
  index: indexOf(choice, position),
  logprobs: null,
  finish_reason: choice["finish_reason"] || null,
});

function convertResponseFromChat({ choices, usage }: JsonObject, identity: ResponseIdentity): JsonObject {
  return {
    id: idOf(identity),
    object: "text_completion",
    created: identity.created,
    model: identity.model,
    choices: list(choices).map((choice, position) => choiceOf(choice, position, object(choice["message"]))),
    usage,
  };
}

function convertStreamFromChat(identity: ResponseIdentity): StreamWriter {
  const { created, model } = identity;
  const common = { id: idOf(identity), object: "text_completion", created, model };
  let usage: unknown;
  let bytes = 0;
  return {
    write(item) {
      const chunk = item instanceof RepeatedChunk ? item.toChunk() : item;
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choices = list(chunk["choices"]).map((choice, position) => {
        const delta = object(choice["delta"]);
        bytes += outputBytes(delta);
        return choiceOf(choice, position, delta);
      });
      const written = choices.filter((choice) => choice.text !== "" || choice.finish_reason !== null);
      return written.length > 0 ? `data: ${JSON.stringify({ ...common, choices: written })}\n\n` : "";
    },
    usage: () => usage,
    outputBytes: () => bytes,
    end: (estimate) =>
      `data: ${JSON.stringify({ ...common, choices: [], usage: completeUsage(usage, estimate) })}\n\ndata: [DONE]\n\n`,
  };
}

/** OpenAI's legacy completions, which are chat with one prompt and an answer in plain text. */
export const completionsConverter: FormatConverter = {
  ...chatConverter,
  requestToChat: (request) => ({ request: completionsToChat(request), ignored: [] }),
  callerFields: { messages: "prompt", max_completion_tokens: "max_tokens" },
  responseFromChat: convertResponseFromChat,
  streamFromChat: convertStreamFromChat,
  native: {
    ...chatConverter.native,
    prepare: (request, target, ignored) => chatConverter.native.prepare(completionsToChat(request), target, ignored),
    finish: (answer, identity, estimate) =>
      convertResponseFromChat(chatConverter.native.finish(answer, identity, estimate), identity),
    stream: convertStreamFromChat,
  },
};
