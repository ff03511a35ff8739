/**
 * Chat-completions itself, the hub: conversion to and from it only fills in what compatible servers leave out. Source:
 * OpenAI's public API reference. Throws `invalidValue` for what chat upstreams do not support.
 */
import type { FormatConverter } from "../converter.ts";
import { applyQuirks } from "./apply-quirks.ts";
import { chatStream, completeChat } from "./complete-chat.ts";
import { convertRequestFromChat, resolveUploads, toUpstream } from "./convert-request-from-chat.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

export { toUpstream } from "./convert-request-from-chat.ts";
export { failureOfChoices, normalizeAnswer } from "./normalize-answer.ts";
export { chunkParser } from "./repeated-chunk.ts";

export const chatConverter: FormatConverter = {
  resolveUploads,
  requestToChat: (request) => ({ request, ignored: [] }),
  callerFields: {},
  responseFromChat: (answer) => answer,
  streamFromChat: chatStream,
  requestFromChat: convertRequestFromChat,
  responseToChat: (answer) => answer,
  // The writer of the caller's format reads the usage from the chunks.
  streamToChat: () => ({
    write: (chunk) => [chunk instanceof RepeatedChunk ? chunk.toChunk() : chunk],
    usage: () => undefined,
  }),
  native: {
    prepare: (request, target, ignored) => applyQuirks(toUpstream(request, target), target.quirks, ignored),
    finish: completeChat,
    usage: ({ usage }) => usage,
    stream: chatStream,
  },
};
