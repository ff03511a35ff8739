import { describe, expect, test } from "vitest";
import { createCut } from "../../workers/handlers/cut.ts";
import { type AbortCause, Aborted } from "../../workers/running.ts";
import { createManualClock } from "../support/manual-clock.ts";

function stream(readsOn: boolean) {
  const clock = createManualClock();
  const [attempt, caller] = [new AbortController(), new AbortController()];
  const cut = createCut({ signal: attempt.signal, disconnected: caller.signal, clock }, () => readsOn);
  const abort = (cause: AbortCause) => (cause === "disconnected" ? caller : attempt).abort(new Aborted(cause));
  const why = (reason: unknown) => (reason as Aborted | undefined)?.cause;
  return { clock, cut, abort, reason: () => why(cut.reason()), aborted: () => why(cut.signal.reason) };
}

describe.each<AbortCause>(["disconnected", "deadline"])("%s", (cause) => {
  test("the provider's stream ends at once where nothing more is to be learned from it", () => {
    const { abort, reason, aborted } = stream(false);
    expect([reason(), aborted()]).toEqual([undefined, undefined]);
    abort(cause);
    expect([reason(), aborted()]).toEqual([cause, cause]);
  });

  test("it is read on for 30 s, and no longer, where its usage is to come", () => {
    const { clock, abort, reason, aborted } = stream(true);
    abort(cause);
    clock.advance(29_999);
    expect([reason(), aborted()]).toEqual([cause, undefined]);
    clock.advance(1);
    expect(aborted()).toBe(cause);
  });

  test.each<AbortCause>(["gone", "lost", "shutdown"])(
    "meanwhile %s: it ends at once, for the first reason",
    (later) => {
      const { clock, cut, abort, reason, aborted } = stream(true);
      abort(cause);
      abort(later);
      // A deadline has used up the attempt's own signal: what comes after it waits for the 30 s.
      if (cause === "deadline") clock.advance(30_000);
      expect([reason(), aborted()]).toEqual([cause, cause]);
      cut.close();
      expect(clock.pending()).toBe(0);
    },
  );
});

test.each<AbortCause>(["gone", "lost", "shutdown"])("%s ends it at once", (cause) => {
  const { abort, aborted } = stream(true);
  abort(cause);
  expect(aborted()).toBe(cause);
});

test("a second end changes neither the reason nor the time", () => {
  const { clock, abort, reason, aborted } = stream(true);
  abort("disconnected");
  clock.advance(20_000);
  abort("deadline");
  clock.advance(10_000);
  expect([reason(), aborted()]).toEqual(["disconnected", "disconnected"]);
});
