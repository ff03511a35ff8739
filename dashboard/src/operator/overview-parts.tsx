import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Badge } from "../components/badge.tsx";
import { Card } from "../components/card.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Money as Amount } from "../components/money.tsx";
import { Notice } from "../components/notice.tsx";
import { ProgressBar } from "../components/progress-bar.tsx";
import { Section } from "../components/section.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { count, duration } from "../lib/format.ts";
import { type Attempts, type Overview, upstreamsQuery, type Window } from "./api.ts";
import { linkClass } from "./links.tsx";
import { UpstreamState } from "./states.tsx";

/** An empty list, as one of several on a page. */
export const Nothing = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <div className="flex flex-col gap-1 rounded-xl border border-dashed border-line px-5 py-4">
    <p className="font-medium">{title}</p>
    <p className="text-muted">{children}</p>
  </div>
);

/** A list of names and values. */
export const Facts = ({ facts }: { readonly facts: readonly (readonly [name: string, value: ReactNode])[] }) => (
  <Card className="grow">
    <dl className="flex flex-col gap-3">
      {facts.map(([name, value]) => (
        <div key={name} className="flex items-baseline justify-between gap-4">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 text-end wrap-anywhere tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  </Card>
);

export function Pools({ overview: { pools, workers, catalog_differs } }: { readonly overview: Overview }) {
  const note = (
    <Link to="/operator/workers" className={linkClass}>
      {workers === null ? "Workers" : `${count(workers)} ${workers === 1 ? "worker" : "workers"}`}
    </Link>
  );
  if (!pools)
    return (
      <Section title="Pools" note={note}>
        <EmptyState title="Queues cannot be read">
          <p>Redis does not answer. New calls get a 503 until it does.</p>
        </EmptyState>
      </Section>
    );
  return (
    <Section title="Pools" note={note}>
      {catalog_differs && (
        <Notice>
          A worker has another catalog than the API: it charges by other prices than are held. Give all processes the
          same.
        </Notice>
      )}
      <Table
        caption="Pools"
        rows={pools}
        rowKey={({ pool }) => pool}
        columns={[
          { header: "Pool", cell: ({ pool }) => <span className="font-medium">{pool}</span> },
          {
            header: "Workers",
            cell: (pool) => (pool.workers === 0 ? <Badge tone="bad">None</Badge> : count(pool.workers)),
            numeric: true,
          },
          {
            header: "In use",
            cell: ({ pool, running, free }) =>
              running + free === 0 ? (
                "–"
              ) : (
                <ProgressBar
                  label={`${pool}: ${running} of ${running + free} in use`}
                  value={running / (running + free)}
                  tone={free === 0 ? "warn" : "accent"}
                />
              ),
          },
          { header: "Running", cell: ({ running }) => count(running), numeric: true },
          { header: "Free", cell: ({ free }) => count(free), numeric: true },
          {
            header: "Waiting",
            cell: ({ waiting }) => (waiting > 0 ? <Badge tone="warn">{count(waiting)}</Badge> : "0"),
            numeric: true,
          },
          {
            header: "Longest wait",
            cell: ({ waiting, oldest_wait_seconds: seconds }) => (waiting > 0 ? duration(seconds * 1000) : "–"),
            numeric: true,
          },
          {
            header: "Jobs waiting",
            cell: ({ jobs_waiting: jobs }) =>
              jobs > 0 ? (
                <Link to="/operator/jobs" className={linkClass}>
                  {count(jobs)}
                </Link>
              ) : (
                "0"
              ),
            numeric: true,
          },
        ]}
      />
    </Section>
  );
}

/** The text and the time of the latest failure of an upstream. */
export const LastFailure = ({ failure: { at, message } }: { readonly failure: { at: number; message: string } }) => (
  <span className="text-xs wrap-anywhere text-muted">
    {message} (<Time at={at} />)
  </span>
);

const order = ["key refused", "open", "ready", "no key"];

/** The state of each upstream with a key, and its attempts in the time that is shown. */
export function Upstreams({
  upstreams,
  within,
}: {
  readonly upstreams: Overview["upstreams"];
  readonly within: Window;
}) {
  const details = useQuery(upstreamsQuery).data?.data ?? [];
  const trafficOf = (id: string) => details.find((each) => each.id === id)?.traffic?.[within];
  const withKey = upstreams
    .filter(({ state }) => state !== "no key")
    .toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state))
    .map((each) => ({ ...each, traffic: trafficOf(each.id) }));
  const without = upstreams.length - withKey.length;
  return (
    <Section
      title="Upstreams"
      note={
        <Link to="/operator/catalog" search={{ part: "upstreams" }} className={linkClass}>
          {without > 0 ? `${count(without)} more without a key` : "Catalog"}
        </Link>
      }
    >
      {withKey.length === 0 ? (
        <Nothing title="No upstream has a key">So no model is listed.</Nothing>
      ) : (
        <Table
          caption="Upstreams"
          rows={withKey}
          rowKey={({ id }) => id}
          columns={[
            {
              header: "Upstream",
              cell: ({ id, state, last_failure: failure }) => (
                <span className="flex flex-col gap-1">
                  <Link to="/operator/catalog" search={{ part: "upstreams" }} className={linkClass}>
                    {id}
                  </Link>
                  {state !== "ready" && failure && <LastFailure failure={failure} />}
                </span>
              ),
              wide: true,
            },
            { header: "State", cell: ({ state }) => <UpstreamState state={state} /> },
            { header: "Attempts", cell: ({ traffic }) => (traffic ? count(traffic.attempts) : "–"), numeric: true },
            { header: "Failed", cell: ({ traffic }) => <FailedShare traffic={traffic} />, numeric: true },
            {
              header: "First token p50 / p95",
              cell: ({ traffic }) => times(traffic?.first_token_p50_ms, traffic?.first_token_p95_ms),
              numeric: true,
            },
            {
              header: "In all p50 / p95",
              cell: ({ traffic }) => times(traffic?.total_p50_ms, traffic?.total_p95_ms),
              numeric: true,
            },
          ]}
        />
      )}
    </Section>
  );
}

const times = (p50: number | null | undefined, p95: number | null | undefined) =>
  p50 == null || p95 == null ? "–" : `${duration(p50)} / ${duration(p95)}`;

/** From this share of failed attempts on, an upstream needs a look. */
const highShare = 0.05;

function FailedShare({ traffic }: { readonly traffic: Attempts | undefined }) {
  if (!traffic || traffic.attempts === 0) return "–";
  const share = traffic.failed / traffic.attempts;
  const text = `${count(traffic.failed)} (${percent(traffic.failed, traffic.attempts)} %)`;
  return share >= highShare ? <Badge tone="bad">{text}</Badge> : text;
}

export const percent = (part: number, whole: number) => (whole === 0 ? "0" : ((100 * part) / whole).toFixed(1));

const names = { mongodb: "MongoDB", redis: "Redis", s3: "Object storage" } as const;

export const Stores = ({ overview: { stores } }: { readonly overview: Overview }) => (
  <Section title="Stores">
    <Facts
      facts={stores.map(({ name, ok, ping_ms: ms }) => [
        names[name],
        ok ? `${(ms ?? 0).toFixed(1)} ms` : <Badge tone="bad">Does not answer</Badge>,
      ])}
    />
  </Section>
);

export function Money({ overview: { money, ledger, owed } }: { readonly overview: Overview }) {
  const open = (of: { open: number; oldest_seconds: number }) =>
    of.open === 0 ? "None" : `${count(of.open)}, oldest ${duration(of.oldest_seconds * 1000)}`;
  const uncounted = <span className="text-muted">No maintenance worker counts them</span>;
  return (
    <Section
      title="Money"
      note={
        <Link to="/operator/money" className={linkClass}>
          Details
        </Link>
      }
    >
      <Facts
        facts={[
          ["Holds", money ? open(money.holds) : uncounted],
          ["Leases", money ? open(money.leases) : uncounted],
          ["Uncaptured calls", money ? count(money.undecided) : "–"],
          [
            "Ledger",
            ledger ? (
              <span className="inline-flex flex-wrap items-center justify-end gap-2">
                {ledger.faults === 0 ? (
                  <Badge tone="good">Agrees</Badge>
                ) : (
                  <Badge tone="bad">{ledger.faults} faults</Badge>
                )}
                <Time at={ledger.checked_at} />
              </span>
            ) : (
              "Not checked yet"
            ),
          ],
          ["Owed to payers", owed ? <Amount usd={owed.owed_usd} /> : "–"],
        ]}
      />
    </Section>
  );
}
