import { expect, test } from "vitest";
import { retryAt } from "../../api/batches/recording.ts";
import { invalidValue, noCapacity, rateLimited, ServiceError, upstreamTimeout } from "../../shared/errors.ts";

const tenSeconds = 10_000;
/** The error of a try, the tries so far, and the seconds until the next one. */
const rows: readonly (readonly [name: string, error: ServiceError, tries: number, seconds: number | undefined])[] = [
  ["a limit", rateLimited("Too many.", 1), 1, 10],
  [
    "a limit that never passes",
    new ServiceError({ ...rateLimited("Never.", 1).fields(), shouldRetry: false }),
    1,
    undefined,
  ],
  ["no capacity", noCapacity("Full."), 2, 40],
  ["out of time", upstreamTimeout("Late.", { shouldRetry: false }), 3, 160],
  ["the fourth time", noCapacity("Full."), 4, 600],
  ["the last time", noCapacity("Full."), 5, undefined],
  ["a bad request", invalidValue("model", "model: no."), 1, undefined],
];

test.for(rows)("a line that failed is run again if that may help, later each time: %s", ([, error, tries, seconds]) => {
  const at = retryAt({ error: error.fields(), tries }, tenSeconds, 0.5);
  expect(at?.getTime()).toBe(seconds === undefined ? undefined : tenSeconds + 1_000 * seconds);
});

test("a line without an error is not run again", () => {
  expect(retryAt({ tries: 1 }, 0, 0.5)).toBeUndefined();
});
