import { expect, test } from "vitest";
import { mergeSpeeds } from "../../shared/jobs/speeds.ts";
import { createSpeeds } from "../../workers/upstreams/speeds.ts";
import { createManualClock } from "../support/manual-clock.ts";

const served = (upstream: string, measured: object, model = "m") => ({ upstream, model, measured });

test("the newest call has a fifth of the weight, and each average those calls that have it", () => {
  const speeds = createSpeeds(createManualClock());
  speeds.note(served("a", { streamMs: 100, tokensPerSecond: 50 }));
  speeds.note(served("a", { streamMs: 200 }));
  speeds.note(served("a", { answerMs: 3_000 }));
  expect(speeds.recent()).toEqual({ a: { m: { calls: 3, streamMs: 120, tokensPerSecond: 50, answerMs: 3_000 } } });
});

test("models without a measurement for ten minutes are forgotten, and at most 64 are reported", () => {
  const clock = createManualClock();
  const speeds = createSpeeds(clock);
  speeds.note(served("a", { answerMs: 1 }));
  clock.advance(5 * 60_000);
  for (let index = 0; index < 70; index++) speeds.note(served("b", { answerMs: 1 }, `m-${index}`));
  const names = Object.keys(speeds.recent()["b"] ?? {});
  expect(names).toHaveLength(64);
  expect([names[0], names.at(-1)]).toEqual(["m-6", "m-69"]);
  expect(JSON.stringify(speeds.recent()).length).toBeLessThan(3_000);
  clock.advance(10 * 60_000 + 1);
  expect(speeds.recent()).toEqual({});
});

test("the workers' averages count by their calls", () => {
  const merged = mergeSpeeds([
    { a: { m: { calls: 1, streamMs: 400, answerMs: 10 } } },
    { a: { m: { calls: 3, streamMs: 100 } }, b: { m: { calls: 2, tokensPerSecond: 7 } } },
    undefined,
  ]);
  expect(Object.fromEntries(merged)).toEqual({
    "a m": { calls: 4, streamMs: 175, answerMs: 10 },
    "b m": { calls: 2, tokensPerSecond: 7 },
  });
});
