import type { ServiceError } from "#errors";
import { eventText, type JsonObject } from "#formats";

/** What a response says of its failure: the format has codes of its own for it. */
export function responseError({ status, message }: ServiceError): JsonObject {
  if (status === 429) return { code: "rate_limit_exceeded", message };
  return { code: status < 500 ? "invalid_prompt" : "server_error", message };
}

export type Emit = (type: string, fields: JsonObject) => string;

/** The events of one stream, numbered from 0. */
export function numbered() {
  let next = 0;
  return {
    emit: ((type, fields) => eventText({ type, sequence_number: next++, ...fields })) satisfies Emit,
    next: () => next++,
  };
}
