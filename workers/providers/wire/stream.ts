import type { Clock } from "#platform/clock";
import type { HttpAnswer } from "#platform/http";
import { type JsonObject, UpstreamFailure } from "../provider.ts";
import { broken, decoded, errorLimitBytes, parse, whole } from "./answers.ts";
import { eventData } from "./events.ts";
import { failureInside } from "./failures.ts";

/** How a format's streams fail and end. */
export interface StreamRules {
  /** The error body that an event stands for, as `failureInside` reads it; undefined for an event that is none. */
  readonly failure: (event: JsonObject) => JsonObject | undefined;
  /** Throws for an event that is not as the format has it. */
  readonly check?: (event: JsonObject) => void;
  /** With this event everything that matters has been said. */
  readonly ends: (event: JsonObject) => boolean;
  /** That event is the last: nobody waits for what comes after, and `[DONE]` does not stand in for it. */
  readonly endsAtOnce?: true;
}

/** The events of an answer, parsed. What came before a failure is still delivered. */
export async function* readStream(
  answer: HttpAnswer,
  rules: StreamRules,
  signal: AbortSignal,
  clock: Clock,
): AsyncGenerator<readonly JsonObject[], void, undefined> {
  const read = (datas: readonly string[]) => {
    const events: JsonObject[] = [];
    try {
      for (const data of datas) {
        if (data === "[DONE]") return { events, done: true };
        if (data === "") continue;
        const event = parse(data);
        const failure = rules.failure(event);
        if (failure) throw failureInside(failure, clock);
        rules.check?.(event);
        events.push(event);
        if (rules.endsAtOnce && rules.ends(event)) break;
      }
      return { events, done: false };
    } catch (failure) {
      return { events, done: false, failure };
    }
  };

  const type = answer.headers["content-type"] ?? "";
  if (type.startsWith("application/json"))
    throw failureInside(parse(await whole(answer, errorLimitBytes, signal)), clock);
  let finished = false;
  try {
    for await (const datas of eventData(decoded(answer))) {
      const { events, done, failure } = read(datas);
      finished ||= events.some(rules.ends);
      if (events.length > 0) yield events;
      if (failure !== undefined) throw failure;
      if (rules.endsAtOnce ? finished : done) return;
    }
  } catch (error) {
    broken(error, signal);
  }
  // Some servers leave [DONE] out. One that broke off in the middle may end its stream just as well.
  if (!finished) throw new UpstreamFailure("unavailable", "the stream ended before its end");
}
