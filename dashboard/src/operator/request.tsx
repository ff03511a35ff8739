import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { unwrap } from "../api/client.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Money } from "../components/money.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Section } from "../components/section.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { calledName } from "../lib/calls.ts";
import { whyCharged } from "../lib/cost.ts";
import { count, duration } from "../lib/format.ts";
import { admin, type Entry } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { Facts } from "./overview-parts.tsx";
import { CallStatus } from "./states.tsx";

const route = getRouteApi("/operator/requests/$id");

export function OperatorRequest() {
  const { id } = route.useParams();
  const entry = useQuery({
    queryKey: ["admin", "request", id],
    queryFn: ({ signal }) => unwrap(admin.GET("/requests/{id}", { params: { path: { id } }, signal })),
  });
  return (
    <Page title="Request" intro={<Id>{id}</Id>} actions={<CopyButton text={id} what="request id" />}>
      <QueryView query={entry}>{(data) => <Details entry={data} />}</QueryView>
    </Page>
  );
}

const ms = (value: number | null) => (value === null ? "–" : duration(value));

function Details({ entry }: { readonly entry: Entry }) {
  const { request, account, buyback } = entry;
  const charged = entry.amount_usd.replace(/^-/, "");
  const why = request && whyCharged({ ...request, cost_usd: charged, refunded: entry.refunded });
  return (
    <>
      <div className="grid gap-8 lg:grid-cols-2">
        <div className="flex flex-col gap-8">
          <Section title="Call">
            <Facts
              facts={[
                ["Account", <AccountLink key="account" id={account} />],
                ["Captured", <Time key="at" at={entry.created_at} />],
                ...(request
                  ? ([
                      ["Status", <CallStatus key="status" status={request.status} error={request.error} />],
                      ...(request.error_message === undefined ? [] : [["Message", request.error_message] as const]),
                      ["Endpoint", request.endpoint ?? "Unknown"],
                      ["Model", calledName(request)],
                      ["Upstream", request.upstream ?? "None"],
                      ["Key", request.key === null ? "None" : <Id key="key">{request.key}</Id>],
                      ...(request.session_id === undefined ? [] : [["Session", request.session_id] as const]),
                      ...(request.user === undefined ? [] : [["User", request.user] as const]),
                      ...(request.tags === undefined ? [] : [["Tags", request.tags.join(", ")] as const]),
                      ...(request.provider_key_id === null
                        ? []
                        : ([
                            ["Own provider key", <Id key="own">{request.provider_key_id}</Id>],
                            ["List price", <Money key="list" usd={request.list_usd ?? "0"} />],
                          ] as const)),
                    ] as const)
                  : []),
              ]}
            />
          </Section>
          {request && (
            <Section title="Times">
              <Facts
                facts={[
                  ["In the queue", ms(request.queue_ms)],
                  ["First token", ms(request.first_token_ms)],
                  ["Total", ms(request.total_ms)],
                ]}
              />
            </Section>
          )}
        </div>
        <Section title="Cost">
          <Facts
            facts={[
              ["Charged", <Money key="amount" usd={charged} />],
              ...(entry.refunded ? ([["Refunded", "Yes"]] as const) : []),
              ...(request
                ? ([
                    ...Object.entries(request.usage)
                      .filter(([, value]) => value > 0)
                      .map(([unit, value]) => [unit.replaceAll("_", " "), count(value)] as const),
                    [
                      "Usage",
                      request.estimated ? "Estimated: the provider reported none" : "As the provider reported it",
                    ],
                    ...(Number(request.shortfall_usd) > 0
                      ? [
                          [
                            "Not charged: above the hold",
                            <Money key="shortfall" usd={request.shortfall_usd} />,
                          ] as const,
                        ]
                      : []),
                    ...(request.upstream_cost_usd === undefined
                      ? []
                      : [["It costs us", <Money key="upstream" usd={request.upstream_cost_usd} />] as const]),
                  ] as const)
                : []),
              ...(buyback
                ? [
                    [
                      `Of it for buybacks, ${buyback.batch ?? "in no batch yet"}`,
                      <Money key="buyback" usd={buyback.amount_usd} />,
                    ] as const,
                  ]
                : []),
            ]}
          />
        </Section>
      </div>
      {why && <p className="max-w-2xl text-muted">{why}</p>}
      {request && <Attempts request={request} />}
    </>
  );
}

type Call = NonNullable<Entry["request"]>;
const colors: Readonly<Record<string, string>> = { succeeded: "var(--color-good)", cancelled: "var(--color-warn)" };

/** A bar for each attempt, on the time scale of the whole call. */
function Attempts({ request: { attempts, total_ms: total } }: { readonly request: Call }) {
  const all = Math.max(
    1,
    total,
    ...attempts.map(({ started_ms, duration_ms }) => (started_ms ?? 0) + (duration_ms ?? 0)),
  );
  return (
    <Section title="Attempts">
      {attempts.length === 0 ? (
        <EmptyState title="No upstream was asked">
          <p>The call ended before that, and cost nothing.</p>
        </EmptyState>
      ) : (
        <Table
          caption="Attempts"
          rows={attempts.map((attempt, at) => ({ ...attempt, at }))}
          rowKey={({ at }) => String(at)}
          columns={[
            {
              header: "Upstream",
              cell: ({ upstream, model }) => [upstream ?? "Unknown", model].filter(Boolean).join(" for "),
            },
            {
              header: "Outcome",
              cell: ({ outcome, status, code }) =>
                [outcome, status, code].filter((each) => each !== undefined).join(" "),
            },
            { header: "Began after", cell: ({ started_ms }) => ms(started_ms), numeric: true },
            { header: "Duration", cell: ({ duration_ms }) => ms(duration_ms), numeric: true },
            {
              header: "In the call's time",
              cell: ({ started_ms: started, duration_ms: took, outcome }) =>
                started === null || took === null ? null : (
                  <svg
                    className="h-3 w-full min-w-32 rounded bg-raised"
                    preserveAspectRatio="none"
                    viewBox="0 0 100 10"
                    aria-hidden="true"
                  >
                    <rect
                      x={Math.min(98, (100 * started) / all)}
                      width={Math.max(2, (100 * took) / all)}
                      height="10"
                      rx="1"
                      fill={colors[outcome] ?? "var(--color-bad)"}
                    />
                  </svg>
                ),
            },
          ]}
        />
      )}
    </Section>
  );
}
