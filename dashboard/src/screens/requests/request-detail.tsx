import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useKeyNames } from "../../api/keys.ts";
import { type CallWithAttempts, requestQuery } from "../../api/requests.ts";
import { Figure } from "../../components/card.tsx";
import { CopiedId, Facts } from "../../components/facts.tsx";
import { Money } from "../../components/money.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Section } from "../../components/section.tsx";
import { Time } from "../../components/time.tsx";
import { calledName } from "../../lib/calls.ts";
import { count, duration } from "../../lib/format.ts";
import { toNano } from "../../lib/usd.ts";
import { GeneratedFileList } from "../files/generated-file-list.tsx";
import { CostTable } from "./cost-table.tsx";
import { RequestError } from "./request-error.tsx";
import { CallStatus } from "./request-table.tsx";
import { Waterfall } from "./waterfall.tsx";

const route = getRouteApi("/requests/$id");

export function RequestDetail() {
  const { id } = route.useParams();
  const query = useQuery(requestQuery(id));
  return (
    <Page
      title="Request"
      // The address may have the id of the response.
      intro={<CopiedId id={query.data?.id ?? id} what="request id" />}
      actions={
        <Link to="/requests" className="text-accent hover:underline">
          All requests
        </Link>
      }
    >
      <QueryView query={query}>{(call) => <Detail call={call} />}</QueryView>
    </Page>
  );
}

function Saved({ call: { cached_tokens, saved_usd } }: { readonly call: CallWithAttempts }) {
  const isLoss = saved_usd.startsWith("-");
  return (
    <>
      {count(cached_tokens)} tokens read, {isLoss ? "its writes cost" : "saved"}{" "}
      <Money usd={saved_usd.replace("-", "")} />
      {isLoss && " more"}
    </>
  );
}
/** Links to the calls with the same session, user or tag. */
const Others = ({ by }: { readonly by: Readonly<Record<string, string>> }) => (
  <Link to="/requests" search={by} className="text-accent hover:underline">
    {Object.values(by)}
  </Link>
);

/** The name and the id: programs know the one, the API the other. */
function KeyFact({ id }: { readonly id: string }) {
  const name = useKeyNames(true)(id);
  return (
    <>
      <Link to="/requests" search={{ key: id }} className="text-accent hover:underline">
        {name}
      </Link>
      {name !== id && <code className="block text-xs text-muted">{id}</code>}
    </>
  );
}

const toGenerated = ({ url, type, expires_at }: CallWithAttempts["files"][number]) => ({
  url,
  contentType: type,
  expiresAt: expires_at,
});

/** A fact that not every request has. */
const optional = <Value,>(name: string, value: Value | null, shown: (value: Value) => ReactNode) =>
  value === null ? [] : [{ name, value: shown(value) }];

const time = (ms: number | null) => (ms === null ? "–" : duration(ms));

/** The account's provider key with which the call ran, and what the call would have cost without it. */
const ownKeyFacts = ({ provider_key_id: id, list_usd, fee_usd }: CallWithAttempts) =>
  id === null
    ? []
    : [
        {
          name: "Own provider key",
          value: (
            <Link to="/requests" search={{ provider_key: id }} className="text-accent hover:underline">
              {id}
            </Link>
          ),
        },
        { name: "Fee", value: <Money usd={fee_usd ?? "0"} /> },
        { name: "List price", value: <Money usd={list_usd ?? "0"} /> },
      ];

function Detail({ call }: { readonly call: CallWithAttempts }) {
  const facts = [
    { name: "Model", value: calledName(call) },
    { name: "Endpoint", value: call.endpoint ?? "Unknown" },
    { name: "Key", value: call.key === null ? "none" : <KeyFact id={call.key} /> },
    { name: "Ended", value: <Time at={call.created_at} /> },
    { name: "Status", value: <CallStatus call={call} /> },
    { name: "Streamed", value: call.streamed === null ? "Unknown" : call.streamed ? "yes" : "no" },
    ...(toNano(call.saved_usd) === 0n ? [] : [{ name: "Prompt cache", value: <Saved call={call} /> }]),
    ...optional("Session", call.session_id, (session_id) => <Others by={{ session_id }} />),
    ...optional("User", call.user, (user) => <Others by={{ user }} />),
    ...(call.tags.length === 0
      ? []
      : [
          {
            name: "Tags",
            value: (
              <span className="flex flex-wrap gap-x-3">
                {call.tags.map((tag) => (
                  <Others key={tag} by={{ tag }} />
                ))}
              </span>
            ),
          },
        ]),
    ...ownKeyFacts(call),
    ...optional("Batch", call.batch, (id) => (
      <Link to="/batches/$id" params={{ id }} className="text-accent hover:underline">
        {id}
      </Link>
    )),
    ...optional("Job", call.job, (id) => (
      <Link to="/jobs/$id" params={{ id }} className="text-accent hover:underline">
        {id}
      </Link>
    )),
    ...optional("Finish reason", call.finish_reason, (reason) => reason),
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
      <RequestError call={call} />
      <Facts facts={facts} />
      {call.files.length > 0 && (
        <Section title="Files it made">
          <GeneratedFileList files={call.files.map(toGenerated)} />
        </Section>
      )}
      <Section title="Where the time went">
        <Waterfall call={call} />
      </Section>
      <Section title="What it cost">
        <CostTable call={call} />
      </Section>
    </>
  );
}
