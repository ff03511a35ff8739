import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Batch, batchQuery, contentUrl, isOpen, kindName } from "../../api/batches.ts";
import { BatchProgress, BatchStatus } from "../../components/batch-state.tsx";
import { Figure } from "../../components/card.tsx";
import { CopiedId, Facts } from "../../components/facts.tsx";
import { Money } from "../../components/money.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Section } from "../../components/section.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count } from "../../lib/format.ts";
import { usdText } from "../../lib/usd.ts";
import { BatchActions } from "./batch-actions.tsx";
import { BatchPace } from "./batch-pace.tsx";

const route = getRouteApi("/batches/$id");
const linkClass = "text-accent hover:underline";

export function BatchDetail() {
  const { id } = route.useParams();
  return (
    <Page
      title="Batch"
      intro={<CopiedId id={id} what="batch id" />}
      actions={
        <Link to="/batches" className={linkClass}>
          All batches
        </Link>
      }
    >
      <QueryView query={useQuery(batchQuery(id))}>{(batch) => <Detail batch={batch} />}</QueryView>
    </Page>
  );
}

const endOf = (batch: Batch) => batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at;

function Detail({ batch }: { readonly batch: Batch }) {
  const { request_counts: counts, usage, errors } = batch;
  const facts = [
    { name: "Kind", value: kindName(batch) },
    { name: "Endpoint", value: batch.endpoint },
    ...(batch.model === null ? [] : [{ name: "Model", value: batch.model }]),
    { name: "Lines", value: count(counts.total) },
    { name: "Completed", value: count(counts.completed) },
    { name: "Failed", value: count(counts.failed) },
    { name: "Input and output tokens", value: `${count(usage.input_tokens)} and ${count(usage.output_tokens)}` },
    { name: "Created", value: <Time at={batch.created_at} /> },
    { name: "Began", value: <Time at={batch.in_progress_at} absent={isOpen(batch) ? "not yet" : "never"} /> },
    { name: "Ended", value: <Time at={endOf(batch)} absent="not yet" /> },
    ...(isOpen(batch) ? [{ name: "Expires", value: <Time at={batch.expires_at} /> }] : []),
    {
      name: "Input",
      value: (
        <a href={contentUrl(batch.input_file_id)} download className={linkClass}>
          Download
        </a>
      ),
    },
    ...Object.entries(batch.metadata).map(([name, value]) => ({
      name,
      value: <span className="whitespace-pre-wrap">{value}</span>,
    })),
  ];
  return (
    <>
      <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
        <Figure label="Status">
          <BatchStatus status={batch.status} paused={batch.x_paused} />
        </Figure>
        <Figure label="Progress">
          <BatchProgress status={batch.status} {...counts} />
        </Figure>
        <Figure label="Rate">
          <BatchPace batch={batch} />
        </Figure>
        <Figure
          label="Cost so far"
          note={batch.in_progress_at !== null && `at most ${usdText(batch.x_estimated_max_cost_usd)}`}
        >
          <Money usd={batch.x_cost_usd} />
        </Figure>
      </div>
      <BatchActions batch={batch} />
      {errors !== null && <Problems problems={errors.data} />}
      <Facts facts={facts} />
    </>
  );
}

type Problem = NonNullable<Batch["errors"]>["data"][number];

const Problems = ({ problems }: { readonly problems: readonly Problem[] }) => (
  <Section title="Why the file is refused">
    <p className="text-muted">No line has run, and nothing is charged. At most 100 errors are listed.</p>
    <Table
      caption="Errors of the file by line"
      columns={[
        { header: "Line", numeric: true, cell: ({ line }) => (line === null ? "–" : count(line)) },
        { header: "Error", cell: ({ code }) => <code className="text-xs">{code}</code> },
        { header: "Message", cell: ({ message }) => <span className="wrap-anywhere">{message}</span>, wide: true },
      ]}
      rows={problems}
      rowKey={({ line, code, param }) => `${line} ${code} ${param}`}
    />
  </Section>
);
