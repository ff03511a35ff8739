import { type JsonObject, object } from "#formats";
import type { AttemptRecord } from "../upstreams/index.ts";

/** The id of an answer or of the first event of a stream, wherever its format has it: by it callers ask what it cost. */
export function noteAnswerId(record: AttemptRecord, answer: JsonObject): void {
  const { id, responseId, response, message } = answer;
  const found = [id, responseId, object(response)["id"], object(message)["id"]].find(
    (each) => typeof each === "string",
  );
  if (typeof found === "string" && found !== "") record.answerId = found;
}

const firstData = /^(?:data: ?|\[)(\{.*\})$/m;

/** Of the first text of a stream, in the caller's format. */
export function noteFirstEvent(record: AttemptRecord, text: string): void {
  const [, data] = firstData.exec(text) ?? [];
  if (data === undefined) return;
  try {
    noteAnswerId(record, object(JSON.parse(data)));
  } catch {
    // An event that is no JSON has no id.
  }
}
