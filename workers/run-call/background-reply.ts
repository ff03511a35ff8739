import type { PaidCall, Reply } from "#jobs";
import type { EventLogWriter } from "#stored-responses";
import type { RunCallDeps } from "./context.ts";
import type { Earlier } from "./stored-answer.ts";

/**
 * The reply of a response in the background, and the log of its events if they are kept. Its readers follow the log, and
 * read the rest from the document of the call, so `final` and `error` only mark the end. No reader slows the call down.
 */
export function openBackgroundReply(
  { eventLogs, clock }: Pick<RunCallDeps, "eventLogs" | "clock">,
  { account, requestId, deadlineAt, detached }: PaidCall,
  earlier: Earlier,
): { readonly reply: Reply; readonly events: EventLogWriter | undefined } {
  const log = { account, requestId };
  const keepsEvents = detached?.background?.keepsEvents === true;
  // If an earlier delivery stored the answer, it wrote the events.
  const events = keepsEvents && !earlier.answer ? eventLogs.open(log, deadlineAt) : undefined;
  let written = 0;
  let firstWriteAt: number | undefined;
  const end = async () => {
    if (keepsEvents) await (events ? events.close() : eventLogs.close(log));
    return true;
  };
  const reply: Reply = {
    async write(text, mark) {
      firstWriteAt ??= clock.now();
      written = mark;
      events?.append(text);
    },
    pause() {},
    resume() {},
    // The output is stored, whoever reads it.
    delivered: () => written,
    firstWriteAt: () => firstWriteAt,
    announce() {},
    flush: async () => true,
    final: end,
    error: end,
  };
  return { reply, events };
}
