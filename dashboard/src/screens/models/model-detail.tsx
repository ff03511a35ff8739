import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Model, modelsQuery, type Performance, performanceQuery } from "../../api/models.ts";
import { Badge } from "../../components/badge.tsx";
import { CallCode } from "../../components/call-code.tsx";
import { Card } from "../../components/card.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { CopiedId, Facts } from "../../components/facts.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Section } from "../../components/section.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { capitalized, count, dayOf, duration, fullDay, share } from "../../lib/format.ts";
import { availabilityText, featureName, typeNames } from "../../lib/models.ts";
import { PriceTable } from "./price-table.tsx";
import { TryIt } from "./try-it.tsx";

const route = getRouteApi("/models/$provider/$name");

export function ModelDetail() {
  const { provider, name } = route.useParams();
  const id = `${provider}/${name}`;
  const query = useQuery(modelsQuery);
  const { data: performance } = useQuery(performanceQuery);
  const model = query.data?.find((each) => each.id === id);
  return (
    <Page
      title={model?.name ?? id}
      intro={<CopiedId id={id} what="model id" />}
      actions={
        <>
          <Link to="/models" className="text-accent hover:underline">
            All models
          </Link>
          {model && <TryIt model={model} />}
        </>
      }
    >
      <QueryView query={query}>
        {() =>
          model ? (
            <Detail model={model} performance={performance?.get(id)} />
          ) : (
            <EmptyState title="This model cannot be called now">
              <p>It does not exist, or no provider serves it at the moment.</p>
            </EmptyState>
          )
        }
      </QueryView>
    </Page>
  );
}

const modalityNames: Readonly<Record<string, string>> = {
  file: "PDFs",
  image: "images",
  audio: "recordings",
};
const inWords = (modalities: readonly string[]) =>
  capitalized(modalities.map((each) => modalityNames[each] ?? each).join(", "));

function reasoningText(reasoning: NonNullable<Model["reasoning"]>): string {
  const { mandatory, supported_efforts: efforts } = reasoning;
  const effort = efforts.length > 0 ? `: ${efforts.join(", ")}` : "";
  return `${mandatory ? "Always" : "Can be turned off"}${effort}`;
}

interface Props {
  readonly model: Model;
  readonly performance: Performance | undefined;
}

function Detail({ model, performance }: Props) {
  const { type, owned_by, context_length, max_output_tokens, features, reasoning, deprecated_at } = model;
  const known = (value: number | null | undefined) => typeof value === "number" && value > 0;
  const facts = [
    { name: "Type", value: typeNames[type] },
    { name: "Made by", value: owned_by },
    { name: "Endpoint", value: <code className="text-xs">{model.endpoint}</code> },
    ...(known(context_length) ? [{ name: "Context", value: `${count(context_length)} tokens` }] : []),
    ...(max_output_tokens ? [{ name: "Longest output", value: `${count(max_output_tokens)} tokens` }] : []),
    { name: "Reads", value: inWords(model.input_modalities) },
    { name: "Returns", value: inWords(model.output_modalities) },
    ...(features.length > 0 ? [{ name: "Features", value: features.map(featureName).join(", ") }] : []),
    ...(reasoning ? [{ name: "Reasoning", value: reasoningText(reasoning) }] : []),
    ...(known(model.created) ? [{ name: "Released", value: fullDay(dayOf(new Date(model.created * 1000))) }] : []),
    ...(known(model.x_batch_discount_bps)
      ? [{ name: "Discount in batches", value: share(model.x_batch_discount_bps / 10_000) }]
      : []),
    ...(deprecated_at === null ? [] : [{ name: "Deprecated", value: <Time at={deprecated_at} /> }]),
  ];
  const sample = sampleOf(model);
  return (
    <>
      {model.description && <p className="max-w-2xl">{model.description}</p>}
      <Facts facts={facts} />
      <Section title="Prices in USD">
        <Card className="w-full max-w-2xl">
          <PriceTable model={model} />
        </Card>
      </Section>
      <Section title="Where it runs, in the order of choice">
        <Upstreams model={model} performance={performance} />
      </Section>
      {sample && (
        <Section title="Call it">
          <div className="flex w-full max-w-2xl flex-col gap-3">
            <CallCode path={model.endpoint} body={sample} />
          </div>
        </Section>
      )}
      {model.supported_parameters.length > 0 && (
        <Section title="Parameters">
          <p className="flex flex-wrap gap-1.5">
            {model.supported_parameters.map((name) => (
              <code key={name} className="rounded-md bg-raised px-1.5 py-0.5 text-xs wrap-anywhere">
                {name}
              </code>
            ))}
          </p>
        </Section>
      )}
    </>
  );
}

/** A first call. Parameters of other models are in the playground, which copies a call as code. */
function sampleOf({ id: model, type }: Model): object | undefined {
  if (type === "text") return { model, messages: [{ role: "user", content: "Hello" }] };
  if (type === "embeddings") return { model, input: "Hello" };
  return type === "image" ? { model, prompt: "A lighthouse" } : undefined;
}

const unknown = <span className="text-muted">–</span>;

/** The service's figures; those of upstreams without enough calls are not known. */
function Upstreams({ model, performance }: Props) {
  const rows = model.x_upstreams.map((upstream) => ({
    ...upstream,
    figures: performance?.upstreams.find(({ id }) => id === upstream.id),
  }));
  const ms = (value: number | null | undefined) => (typeof value === "number" ? duration(value) : unknown);
  return (
    <div className="flex flex-col gap-2">
      <Table
        caption="Upstreams of the model"
        rows={rows}
        rowKey={({ id }) => id}
        columns={[
          {
            header: "Upstream",
            cell: ({ id, region, data_residency: residency }) => (
              <span className="flex flex-wrap items-center gap-1.5">
                <span className="font-medium">{id}</span>
                {region && <Badge>In {region}</Badge>}
                {residency && <Badge tone="good">Data stays in {residency.toUpperCase()}</Badge>}
              </span>
            ),
          },
          {
            header: "Now",
            cell: ({ figures }) =>
              figures ? (
                <Badge tone={figures.responds ? "good" : "bad"}>
                  {figures.responds ? "Ready" : "Does not respond"}
                </Badge>
              ) : (
                unknown
              ),
          },
          {
            header: "Available",
            numeric: true,
            cell: ({ figures }) =>
              typeof figures?.availability === "number" ? availabilityText(figures.availability) : unknown,
          },
          { header: "First token", numeric: true, cell: ({ figures }) => ms(figures?.first_token_ms) },
          { header: "Whole answer", numeric: true, cell: ({ figures }) => ms(figures?.total_ms) },
          {
            header: "Tokens/s",
            numeric: true,
            cell: ({ figures }) =>
              typeof figures?.tokens_per_second === "number" ? count(Math.round(figures.tokens_per_second)) : unknown,
          },
        ]}
      />
      <p className="text-xs text-muted">
        Medians and the share of attempts that did not fail, in the last 24 hours, over all accounts of this service.
      </p>
    </div>
  );
}
