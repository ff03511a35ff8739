import type { ServiceError } from "#errors";
import { type JsonObject, text } from "../json.ts";

/** One event as it goes out: its name stands on the event line and in the data. */
export const eventText = (event: JsonObject): string =>
  `event: ${text(event["type"]).replace(/\s/g, "")}\ndata: ${JSON.stringify(event)}\n\n`;

/** Ends a stream that failed. */
export const errorEvent = ({ code, message, param }: ServiceError, sequenceNumber: number): string =>
  eventText({ type: "error", code, message, param: param ?? null, sequence_number: sequenceNumber });
