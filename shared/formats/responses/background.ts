import { eventText } from "./codec.ts";

/**
 * Responses in the background (docs/api/background.md). A request that runs in the background is a job, whose response has
 * an id of ours, made from the request's id.
 *
 * The events of its stream have one numbering for all readers. The first ones show the response as it was accepted, and
 * the last one its end; the API writes both from what is stored. The worker numbers the events in between.
 */
const ownId = /^resp_([0-9A-Za-z]{24})$/;

export const responseIdOf = (requestId: string): string => requestId.replace(/^req_/, "resp_");
/** Returns undefined if the id is not one of ours. */
export function requestIdOfResponse(responseId: string): string | undefined {
  const [, unique] = ownId.exec(responseId) ?? [];
  return unique === undefined ? undefined : `req_${unique}`;
}

const firstTypes = ["response.created", "response.queued"] as const;
/** The number of the worker's first event. */
export const firstWorkerEvent = firstTypes.length;

/** The events that come before those of the worker, without those up to the number `after`. `response` is JSON. */
export const firstEvents = (response: string, after: number): string =>
  firstTypes.map((type, number) => (number > after ? responseEvent(type, number, response) : "")).join("");

export const lastEvent = (number: number, status: string, response: string): string =>
  responseEvent(`response.${status}`, number, response);

/** An event with a response, which may be large, so that its JSON is not parsed. */
function responseEvent(type: string, number: number, response: string): string {
  const withoutResponse = eventText({ type, sequence_number: number });
  return withoutResponse.replace(/\}\n\n$/, () => `,"response":${response}}\n\n`);
}

const eventEnd = "\n\n";

/** Counts the events of a text that consists of whole events: JSON has no line breaks. */
export function countEvents(text: string): number {
  let count = 0;
  for (let at = text.indexOf(eventEnd); at >= 0; at = text.indexOf(eventEnd, at + eventEnd.length)) count++;
  return count;
}

/** Returns the text without its first events. */
export function skipEvents(text: string, count: number): string {
  let at = 0;
  for (let skipped = 0; skipped < count; skipped++) {
    const end = text.indexOf(eventEnd, at);
    if (end < 0) return "";
    at = end + eventEnd.length;
  }
  return text.slice(at);
}
