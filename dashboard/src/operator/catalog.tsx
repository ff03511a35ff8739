import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Badge } from "../components/badge.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Select } from "../components/select.tsx";
import { Table } from "../components/table.tsx";
import { count } from "../lib/format.ts";
import { useNow } from "../lib/time.ts";
import { type CatalogModel, catalogQuery, type Upstream, upstreamsQuery } from "./api.ts";
import { Id } from "./links.tsx";
import { LastFailure, Section } from "./overview-parts.tsx";
import { filled } from "./search.ts";
import { UpstreamState } from "./states.tsx";

const route = getRouteApi("/operator/catalog");

export function Catalog() {
  const upstreams = useQuery(upstreamsQuery);
  const catalog = useQuery(catalogQuery);
  return (
    <Page title="Catalog" intro="Models, the upstreams that serve them, and whether those can take a call now.">
      <QueryView query={catalog}>
        {({ data }) => <Models models={data} upstreams={upstreams.data?.data ?? []} />}
      </QueryView>
      <Section title="Upstreams">
        <QueryView query={upstreams}>{({ data }) => <Upstreams upstreams={data} />}</QueryView>
      </Section>
    </Page>
  );
}

function Models({
  models,
  upstreams,
}: {
  readonly models: readonly CatalogModel[];
  readonly upstreams: readonly Upstream[];
}) {
  const { search = "", upstream = "" } = route.useSearch();
  const navigate = useNavigate();
  const filter = (next: { search?: string; upstream?: string }) =>
    void navigate({
      to: "/operator/catalog",
      replace: true,
      search: filled({ search, upstream, ...next }),
    });
  const words = search.toLowerCase();
  const shown = models.filter(
    (model) =>
      `${model.id} ${model.name}`.toLowerCase().includes(words) &&
      (upstream === "" || model.upstreams.some(({ id }) => id === upstream)),
  );
  return (
    <div className="flex flex-col gap-4">
      <div className="grid max-w-2xl gap-3 sm:grid-cols-2">
        <Field
          label="Model"
          type="search"
          placeholder="Name or id"
          value={search}
          onChange={(event) => filter({ search: event.target.value.trimStart() })}
        />
        <Select
          label="Upstream"
          value={upstream}
          onChange={(id) => filter({ upstream: id })}
          options={[{ value: "", label: "Any upstream" }, ...upstreams.map(({ id }) => ({ value: id, label: id }))]}
        />
      </div>
      <p className="text-muted" aria-live="polite">
        {count(shown.length)} of {count(models.length)} models, {count(models.filter(({ listed }) => listed).length)}{" "}
        listed to callers
      </p>
      {shown.length === 0 ? (
        <EmptyState title="No model fits">
          <p>Models come from the catalog file and its overlay.</p>
        </EmptyState>
      ) : (
        <Table
          caption="Models"
          rows={shown}
          rowKey={({ id }) => id}
          columns={[
            {
              header: "Model",
              cell: ({ id, name }) => (
                <span className="flex flex-col">
                  <span className="font-medium">{name}</span>
                  <Id>{id}</Id>
                </span>
              ),
            },
            { header: "Type", cell: ({ type }) => type },
            { header: "State", cell: (model) => <ModelState model={model} /> },
            {
              header: "Upstreams, in order",
              cell: (model) => (
                <ul className="flex flex-col gap-1">
                  {model.upstreams.map(({ id, model: name, state }) => (
                    <li key={`${id} ${name}`} className="flex flex-wrap items-center gap-2">
                      <UpstreamState state={state} />
                      <span>{id}</span>
                      {name !== model.id && <span className="font-mono text-xs wrap-anywhere text-muted">{name}</span>}
                    </li>
                  ))}
                </ul>
              ),
            },
          ]}
        />
      )}
    </div>
  );
}

function ModelState({ model: { listed, deprecated_at } }: { readonly model: CatalogModel }) {
  const now = useNow();
  return (
    <span className="inline-flex flex-wrap gap-1.5">
      {listed ? <Badge tone="good">Listed</Badge> : <Badge>Not listed</Badge>}
      {deprecated_at !== null && deprecated_at * 1000 <= now && <Badge tone="warn">Deprecated</Badge>}
    </span>
  );
}

const Upstreams = ({ upstreams }: { readonly upstreams: readonly Upstream[] }) => (
  <Table
    caption="Upstreams"
    rows={upstreams}
    rowKey={({ id }) => id}
    columns={[
      { header: "Upstream", cell: ({ id }) => <span className="font-medium">{id}</span> },
      { header: "Provider", cell: ({ provider }) => provider },
      { header: "State", cell: ({ state }) => <UpstreamState state={state} /> },
      {
        header: "In workers",
        cell: ({ workers: { ready, open, key_refused, no_key } }) =>
          [
            ready > 0 && `${ready} ready`,
            open > 0 && `${open} open`,
            key_refused > 0 && `${key_refused} with a refused key`,
            no_key > 0 && `${no_key} without a key`,
          ]
            .filter(Boolean)
            .join(", ") || "None",
      },
      { header: "Models", cell: ({ models }) => count(models.length), numeric: true },
      {
        header: "At once, each worker",
        cell: ({ concurrency }) => (concurrency === null ? "No limit" : count(concurrency)),
        numeric: true,
      },
      {
        header: "Address",
        cell: ({ base_url: url, addresses }) => {
          const called = addresses.length > 0 ? addresses : [url].filter((each) => each !== null);
          return called.length === 0 ? "–" : <Id>{called.join(", ")}</Id>;
        },
      },
      {
        header: "Last failure",
        cell: ({ last_failure: failure }) => (failure ? <LastFailure failure={failure} /> : "None"),
        wide: true,
      },
    ]}
  />
);
