import { describe, expect, test } from "vitest";
import { watchInterruption } from "../../workers/handlers/interruption.ts";
import { type AbortCause, Aborted } from "../../workers/running.ts";
import { createManualClock } from "../support/manual-clock.ts";

function openStream(awaitsUsage: boolean) {
  const clock = createManualClock();
  const [call, caller] = [new AbortController(), new AbortController()];
  const watched = { signal: call.signal, disconnected: caller.signal, clock };
  const interruption = watchInterruption(watched, () => awaitsUsage);
  const abort = (cause: AbortCause) => (cause === "disconnected" ? caller : call).abort(new Aborted(cause));
  const causeOf = (reason: unknown) => (reason as Aborted | undefined)?.cause;
  return {
    clock,
    interruption,
    abort,
    reason: () => causeOf(interruption.reason()),
    aborted: () => causeOf(interruption.signal.reason),
  };
}

describe.each<AbortCause>(["disconnected", "deadline"])("%s", (cause) => {
  test("ends the provider's stream at once where no usage is awaited", () => {
    const { abort, reason, aborted } = openStream(false);
    expect([reason(), aborted()]).toEqual([undefined, undefined]);
    abort(cause);
    expect([reason(), aborted()]).toEqual([cause, cause]);
  });

  test("lets the stream be read for 30 s, and no longer, where its usage is awaited", () => {
    const { clock, abort, reason, aborted } = openStream(true);
    abort(cause);
    clock.advance(29_999);
    expect([reason(), aborted()]).toEqual([cause, undefined]);
    clock.advance(1);
    expect(aborted()).toBe(cause);
  });

  test.each<AbortCause>(["gone", "lost", "shutdown"])(
    "%s while usage is awaited ends it at once, for the first reason",
    (later) => {
      const { clock, interruption, abort, reason, aborted } = openStream(true);
      abort(cause);
      abort(later);
      // A deadline has aborted the call's own signal, so only the 30 s limit the rest.
      if (cause === "deadline") clock.advance(30_000);
      expect([reason(), aborted()]).toEqual([cause, cause]);
      interruption.close();
      expect(clock.pending()).toBe(0);
    },
  );
});

test.each<AbortCause>(["gone", "lost", "shutdown"])("%s ends the stream at once", (cause) => {
  const { abort, aborted } = openStream(true);
  abort(cause);
  expect(aborted()).toBe(cause);
});

test("a second interruption changes neither the reason nor the time", () => {
  const { clock, abort, reason, aborted } = openStream(true);
  abort("disconnected");
  clock.advance(20_000);
  abort("deadline");
  clock.advance(10_000);
  expect([reason(), aborted()]).toEqual(["disconnected", "disconnected"]);
});
