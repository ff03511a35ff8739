import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type CallWithAttempts, requestQuery } from "../../api/requests.ts";
import { Card, Figure } from "../../components/card.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { Money } from "../../components/money.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../lib/format.ts";
import { CostTable } from "./cost-table.tsx";
import { CallStatus } from "./request-table.tsx";
import { Waterfall } from "./waterfall.tsx";

const route = getRouteApi("/requests/$id");

export function RequestDetail() {
  const { id } = route.useParams();
  return (
    <Page
      title="Request"
      intro={
        <span className="flex flex-wrap items-center gap-2">
          <code className="text-xs wrap-anywhere">{id}</code>
          <CopyButton text={id} what="request id" />
        </span>
      }
      actions={
        <Link to="/requests" className="text-accent hover:underline">
          All requests
        </Link>
      }
    >
      <QueryView query={useQuery(requestQuery(id))}>{(call) => <Detail call={call} />}</QueryView>
    </Page>
  );
}

const time = (ms: number | null) => (ms === null ? "–" : duration(ms));

function Detail({ call }: { readonly call: CallWithAttempts }) {
  const facts = [
    { name: "Model", value: call.model ?? "unknown" },
    { name: "Endpoint", value: call.endpoint ?? "unknown" },
    { name: "Key", value: call.key ?? "none" },
    { name: "Made", value: <Time at={call.created_at} /> },
    { name: "Status", value: <CallStatus call={call} /> },
    ...(call.http_status === null ? [] : [{ name: "HTTP status", value: call.http_status }]),
    { name: "Streamed", value: call.streamed === null ? "unknown" : call.streamed ? "yes" : "no" },
    ...(call.finish_reason === null ? [] : [{ name: "Finish reason", value: call.finish_reason }]),
  ];
  return (
    <>
      <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
        <Figure label="Cost">
          <Money usd={call.cost_usd} />
        </Figure>
        <Figure label="Queue">{time(call.queue_ms)}</Figure>
        <Figure label="First token">{time(call.first_token_ms)}</Figure>
        <Figure label="Total">{time(call.total_ms)}</Figure>
      </div>
      <Card>
        <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-2 lg:grid-cols-3">
          {facts.map(({ name, value }) => (
            <div key={name} className="flex min-w-0 flex-col gap-0.5">
              <dt className="text-xs text-muted">{name}</dt>
              <dd className="wrap-anywhere">{value}</dd>
            </div>
          ))}
        </dl>
      </Card>
      <section className="flex flex-col gap-4">
        <h2 className="text-base font-semibold">Where the time went</h2>
        <Waterfall call={call} />
      </section>
      <section className="flex flex-col gap-4">
        <h2 className="text-base font-semibold">What it cost</h2>
        <CostTable call={call} />
      </section>
    </>
  );
}
