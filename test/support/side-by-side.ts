import { test } from "vitest";

interface Group {
  readonly runs: (() => Promise<void>)[];
  ended?: Promise<readonly PromiseSettledResult<void>[]>;
}

/**
 * Declares tests that mostly wait, in groups of this many: the first test of a group runs all of them side by side, and each
 * reports its own result. What they start ends with the last of them. The first fails with any, so that logs are shown.
 */
export function sideBySide(groupSize: number): (title: string, run: () => Promise<void>) => void {
  let latest: Group = { runs: [] };
  return (title, run) => {
    if (latest.runs.length === groupSize) latest = { runs: [] };
    const group = latest;
    const at = group.runs.push(run) - 1;
    // oxlint-disable-next-line vitest/expect-expect vitest/valid-title -- both come from the caller
    test(title, async () => {
      const isFirst = group.ended === undefined;
      const ended = await (group.ended ??= Promise.allSettled(group.runs.map((each) => each())));
      const failed = [ended[at], ...(isFirst ? ended : [])].find((result) => result?.status === "rejected");
      if (failed) throw failed.reason;
    });
  };
}
