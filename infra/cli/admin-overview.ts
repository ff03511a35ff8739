import { setTimeout } from "node:timers/promises";
import type { z } from "zod";
import type { overview } from "../../api/routes/admin/overview.ts";
import { aligned, type Item } from "./admin-print.ts";

const redrawMs = 2_000;
const clearScreen = "\u001b[H\u001b[J";

type Overview = z.input<typeof overview>;
type Open = NonNullable<Overview["money"]>["holds"];

const trafficLines = (traffic: NonNullable<Overview["traffic"]>) =>
  aligned([
    ["", "CALLS", "FAILED", "REFUSED", "CHARGED USD"],
    ...(
      [
        ["last 5 minutes", traffic.last_5_minutes],
        ["last hour", traffic.last_hour],
        ["last day", traffic.last_day],
      ] as const
    ).map(([name, { calls, failed, refused, charged_usd }]) => [
      name,
      `${calls}`,
      `${failed}`,
      `${refused}`,
      charged_usd,
    ]),
  ]);

const poolLines = (pools: NonNullable<Overview["pools"]>) =>
  aligned([
    ["POOL", "WORKERS", "RUNNING", "FREE", "WAITING", "OLDEST", "JOBS WAITING", "OLDEST JOB"],
    ...pools.map(({ pool, workers, running, free, waiting, jobs_waiting: jobs, ...oldest }) => [
      pool,
      ...[workers, running, free, waiting].map(String),
      waiting > 0 ? `${oldest.oldest_wait_seconds.toFixed(1)} s` : "-",
      String(jobs),
      jobs > 0 ? `${oldest.oldest_job_wait_seconds.toFixed(1)} s` : "-",
    ]),
  ]);

/** Counts the upstreams by state and names those whose circuit is open. */
function upstreamLine(upstreams: Overview["upstreams"]): string {
  const ids = (state: string) => upstreams.filter((each) => each.state === state).map(({ id }) => id);
  const open = ids("open");
  const shown = open.length > 0 ? `open: ${open.join(", ")}` : "none open";
  return `${ids("ready").length} ready, ${shown}, ${ids("no key").length} without a key`;
}

const openText = ({ open, oldest_seconds: seconds }: Open) => (open > 0 ? `${open}, oldest ${seconds} s` : "none");

export function showOverview(item: Item): string {
  const shown = item as unknown as Overview;
  const { traffic, pools, workers, upstreams, stores, money, ledger, owed } = shown;
  const rows = [
    ["workers", `${workers ?? "not known"}${shown.catalog_differs ? ", with a different catalog than the API" : ""}`],
    ["upstreams", upstreamLine(upstreams)],
    [
      "stores",
      stores.map(({ name, ok, ping_ms }) => (ok ? `${name} ${ping_ms} ms` : `${name} DOES NOT ANSWER`)).join(", "),
    ],
    ["holds", money ? openText(money.holds) : "not counted: no maintenance worker"],
    ["leases", money ? openText(money.leases) : "not counted: no maintenance worker"],
    ["undecided", money ? String(money.undecided) : "-"],
    ["ledger", ledger ? `${ledger.faults} faults, difference ${ledger.difference_usd} USD` : "not checked yet"],
    ["owed", owed ? `${owed.owed_usd} USD of ${owed.payments} payments` : "not known"],
  ];
  const at = new Date(shown.at * 1_000).toISOString().replace("T", " ").slice(0, 19);
  return [
    `${at} UTC\n`,
    traffic ? trafficLines(traffic) : "Calls cannot be counted: Redis is unavailable.\n",
    pools ? poolLines(pools) : "Pools are unknown: Redis is unavailable.\n",
    aligned(rows),
  ].join("\n");
}

/** Polls and shows the overview until Ctrl-C, in place on a terminal. Errors are shown, and the next poll follows. */
export async function watchOverview(read: () => Promise<Item>, show: (item: Item) => string): Promise<void> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  for (let first = true; !stop.signal.aborted; first = false) {
    const text = await read().then(show, (error: unknown) => {
      // An error in the first poll, such as a wrong token, is permanent.
      if (first) throw error;
      return `${(error as Error).message}\n`;
    });
    if (stop.signal.aborted) break;
    process.stdout.write(process.stdout.isTTY ? `${clearScreen}${text}\nPress Ctrl-C to stop.\n` : text);
    await setTimeout(redrawMs, undefined, { signal: stop.signal }).catch(() => undefined);
  }
}
