import type { Request } from "express";
import type { ServiceError } from "#errors";
import { type Codec, chatCodec, geminiCodec, messagesCodec } from "#formats";

/** As it was asked for, not what a router has left of it; without the query, which may hold a key. */
export const pathOf = ({ originalUrl }: Request): string => originalUrl.replace(/\?.*$/s, "");

const gemini = geminiCodec("", false, false);

/**
 * In whose shape an error is told that no route of a call made: by the prefix of the path; of the lists of models, and of
 * Gemini's calls under `/v1`, by what else tells them apart.
 */
function shapeOf(req: Request): Codec {
  const path = pathOf(req);
  if (/^\/v1beta(\/|$)/.test(path)) return gemini;
  if (/^\/v1\/messages(\/|$)/.test(path)) return messagesCodec;
  if (/^\/v1\/models(\/|$)/.test(path)) return shapeOfModels(req);
  if (/^\/v1\/.*:[A-Za-z]+$/.test(path)) return gemini;
  return chatCodec;
}

/** `anthropic-version` goes before Google's headers. Whoever posts below the list calls a model, as Gemini has it. */
function shapeOfModels(req: Request): Codec {
  if (req.method === "POST" && /:[A-Za-z]*$/.test(req.path)) return gemini;
  switch (listOf(req)) {
    case "messages":
      return messagesCodec;
    case "gemini":
      return gemini;
    case "ours":
      return chatCodec;
  }
}

/** wire-details, "Paths and lists": the shape of the list of models under `/v1`. */
export function listOf(req: Request): "messages" | "gemini" | "ours" {
  if (req.headers["anthropic-version"] !== undefined) return "messages";
  const isGoogle = ["x-goog-api-key", "x-goog-api-client"].some((name) => req.headers[name] !== undefined);
  return isGoogle ? "gemini" : "ours";
}

export const errorBody = (req: Request, error: ServiceError, requestId: string): string =>
  shapeOf(req).error(error, requestId);
