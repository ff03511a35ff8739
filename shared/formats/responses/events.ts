import type { ServiceError } from "#errors";
import type { Loose } from "../loose.ts";
import { text } from "../read.ts";

/** One event as it goes out: its name stands on the event line and in the data. */
export const eventText = (event: Loose): string =>
  `event: ${text(event["type"]).replace(/\s/g, "")}\ndata: ${JSON.stringify(event)}\n\n`;

/** Ends a stream that failed. */
export const errorEvent = ({ code, message, param }: ServiceError, sequenceNumber: number): string =>
  eventText({ type: "error", code, message, param: param ?? null, sequence_number: sequenceNumber });

/** What a response says of its failure: the format has codes of its own for it. */
export function responseError({ status, message }: ServiceError): Loose {
  if (status === 429) return { code: "rate_limit_exceeded", message };
  return { code: status < 500 ? "invalid_prompt" : "server_error", message };
}

export type Emit = (type: string, fields: Loose) => string;

/** The events of one stream, numbered from 0. */
export function numbered() {
  let next = 0;
  return {
    emit: ((type, fields) => eventText({ type, sequence_number: next++, ...fields })) satisfies Emit,
    next: () => next++,
  };
}
