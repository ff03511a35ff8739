import { isSettled, type MoneyCheck } from "./bench.ts";
import { gatewayCpu, medianRatio, type Round } from "./measure.ts";
import { pacedLoads, titles } from "./scenarios.ts";
import { table, times } from "./table.ts";
import { addedMs, firstByte, latency, roundsOf } from "./tables.ts";

/** A figure that the service must reach compared with Portkey's gateway in the same run. */
interface Bar {
  readonly title: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly reached: number;
  readonly unit: "of Portkey's" | "units";
}

/** `rounds` are all rounds of the run. Bars that the run did not measure are omitted. */
function barsOf(rounds: readonly Round[]): Bar[] {
  const ratio = (title: string, value: (round: Round) => number) =>
    medianRatio(roundsOf(rounds, title, "service"), roundsOf(rounds, title, "portkey"), value);
  const rate = (stream: boolean, connections: number, atLeast: number): Bar => {
    const title = titles.closed(stream, connections);
    return {
      title: `${title}: rate`,
      atLeast,
      reached: ratio(title, ({ outcome }) => outcome.perSecond),
      unit: "of Portkey's",
    };
  };
  const cpu = (title: string, atMost: number): Bar => ({
    title: `${title}: processor time a call`,
    atMost,
    reached: ratio(title, gatewayCpu),
    unit: "of Portkey's",
  });
  const [json, stream] = [titles.closed(false, 1), titles.closed(true, 1)];
  const unitMs = addedMs(rounds, json, "portkey", latency);
  const bars: Bar[] = [
    rate(false, 50, 1.5),
    rate(true, 50, 1.4),
    rate(false, 10, 0.8),
    cpu(titles.closed(false, 50), 0.85),
    cpu(titles.closed(true, 50), 0.9),
    ...pacedLoads.map((load) =>
      cpu(titles.paced(load), load.connections >= 500 && load.begun === "evenly" ? 0.9 : 1.1),
    ),
    {
      title: `${stream}: first byte`,
      atMost: 2.5,
      reached: addedMs(rounds, stream, "service", firstByte) / unitMs,
      unit: "units",
    },
    {
      title: `${json}: whole answer`,
      atMost: 4,
      reached: addedMs(rounds, json, "service", latency) / unitMs,
      unit: "units",
    },
  ];
  return bars.filter(({ reached }) => !Number.isNaN(reached));
}

export function renderBars(rounds: readonly Round[], checks: readonly MoneyCheck[]): string {
  const bars = barsOf(rounds).map(({ title, atLeast, atMost, reached, unit }) => {
    const bar = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
    const pass = reached >= (atLeast ?? 0) && reached <= (atMost ?? Infinity);
    return [
      title,
      `${bar} ${unit}`,
      unit === "units" ? reached.toFixed(2) : times(reached),
      pass ? "pass" : "**fail**",
    ];
  });
  const settled = checks.filter(isSettled).length;
  const money = [
    "money after every scenario: check ok, difference 0, nothing undecided, nothing held, every answer paid once",
    "all",
    `${settled} of ${checks.length}`,
    settled === checks.length ? "pass" : "**fail**",
  ];
  return table(["bar", "wanted", "measured", ""], checks.length > 0 ? [...bars, money] : bars);
}

export function renderChecks(checks: readonly MoneyCheck[]): string {
  const rows = checks.map((checked) => {
    const { title, answered, paid, failed, check } = checked;
    const { accounts, difference_usd, undecided, open_holds } = check;
    const numbers = [answered, paid, failed, accounts, undecided, open_holds].map((value) =>
      value.toLocaleString("en-US"),
    );
    return [title, ...numbers, difference_usd, isSettled(checked) ? "ok" : "**not ok**"];
  });
  const head = ["after", "answered", "paid", "failed", "accounts", "undecided", "held", "difference, $", "check"];
  return table(head, rows);
}
