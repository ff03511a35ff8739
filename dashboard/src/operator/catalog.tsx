import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Select } from "../components/select.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { Table } from "../components/table.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count } from "../lib/format.ts";
import { priceName, unitName } from "../lib/prices.ts";
import { useNow } from "../lib/time.ts";
import { usdText } from "../lib/usd.ts";
import { type CatalogModel, catalogQuery, type Upstream, upstreamsQuery } from "./api.ts";
import { Id } from "./links.tsx";
import { LastFailure } from "./overview-parts.tsx";
import { filled } from "./search.ts";
import { UpstreamState } from "./states.tsx";

const route = getRouteApi("/operator/catalog");

const parts = [
  { value: "models", label: "Models" },
  { value: "upstreams", label: "Upstreams" },
] as const;

export function Catalog() {
  const upstreams = useQuery(upstreamsQuery);
  const catalog = useQuery(catalogQuery);
  const [part, show] = useChoice("part", parts, "models");
  return (
    <Page
      title="Catalog"
      intro="Models, the upstreams that serve them, and whether those can take a call now."
      actions={<SwitchButtons label="Part" value={part} options={parts} onChange={show} />}
    >
      {part === "models" ? (
        <QueryView query={catalog}>
          {({ data }) => <Models models={data} upstreams={upstreams.data?.data ?? []} />}
        </QueryView>
      ) : (
        <QueryView query={upstreams}>{({ data }) => <Upstreams upstreams={data} />}</QueryView>
      )}
    </Page>
  );
}

const states = [
  { value: "", label: "All" },
  { value: "listed", label: "Listed to callers" },
  { value: "unlisted", label: "Not listed" },
] as const;

/** Models on a page. */
const pageSize = 25;

function Models({
  models,
  upstreams,
}: {
  readonly models: readonly CatalogModel[];
  readonly upstreams: readonly Upstream[];
}) {
  const values = route.useSearch();
  const navigate = useNavigate();
  const [shownCount, setShownCount] = useState(pageSize);
  const { search = "", upstream = "", state = "" } = values;
  const filter = (next: { search?: string; upstream?: string; state?: string }) => {
    setShownCount(pageSize);
    void navigate({ to: "/operator/catalog", replace: true, search: filled({ ...values, ...next }) });
  };
  const words = search.toLowerCase();
  const found = models.filter(
    (model) =>
      `${model.id} ${model.name}`.toLowerCase().includes(words) &&
      (upstream === "" || model.upstreams.some(({ id }) => id === upstream)) &&
      (state === "" || model.listed === (state === "listed")),
  );
  return (
    <div className="flex flex-col gap-4">
      <search className="grid max-w-3xl gap-3 sm:grid-cols-3">
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
        <Select label="State" value={state} options={states} onChange={(value) => filter({ state: value })} />
      </search>
      <p className="text-muted" aria-live="polite">
        {count(found.length)} of {count(models.length)} models, {count(models.filter(({ listed }) => listed).length)}{" "}
        listed to callers
      </p>
      {found.length === 0 ? (
        <EmptyState title="No model fits">
          <p>Models come from the catalog file and its overlay.</p>
        </EmptyState>
      ) : (
        <>
          <Table
            caption="Models"
            rows={found.slice(0, shownCount)}
            rowKey={({ id }) => id}
            columns={[
              {
                header: "Model",
                cell: ({ id, name, type }) => (
                  <span className="flex flex-col">
                    <span className="font-medium">{name}</span>
                    <Id>{id}</Id>
                    <span className="text-xs text-muted">{type}</span>
                  </span>
                ),
                wide: true,
              },
              { header: "State", cell: (model) => <ModelState model={model} /> },
              {
                header: "Price",
                cell: ({ pricing }) => <Prices lines={linesOf(pricing, ({ list_usd: usd }) => usd)} />,
              },
              {
                header: "Upstreams, in order",
                cell: (model) => (
                  <ul className="flex flex-col gap-2">
                    {model.upstreams.map(({ id, model: name, state: itsState, cost }) => (
                      <li key={`${id} ${name}`} className="flex flex-col gap-1">
                        <span className="flex flex-wrap items-center gap-2">
                          <UpstreamState state={itsState} />
                          <span>{id}</span>
                          {name !== model.id && (
                            <span className="font-mono text-xs wrap-anywhere text-muted">{name}</span>
                          )}
                        </span>
                        {cost ? (
                          <Prices lines={linesOf(cost, ({ usd }) => usd)} what="costs" />
                        ) : (
                          <span className="text-xs text-muted">Cost unknown</span>
                        )}
                      </li>
                    ))}
                  </ul>
                ),
                wide: true,
              },
            ]}
          />
          {found.length > shownCount && (
            <Button className="self-start" onClick={() => setShownCount(shownCount + pageSize)}>
              Show more
            </Button>
          )}
        </>
      )}
    </div>
  );
}

type Line = readonly [name: string, unit: string, usd: string];
const linesOf = <Price extends { readonly unit: string }>(
  prices: Readonly<Record<string, Price>>,
  usdOf: (price: Price) => string,
): readonly Line[] =>
  Object.entries(prices).map(([key, price]) => [priceName(key), unitName(price.unit), usdOf(price)]);

/** More are in the title. */
const shownLines = 2;

/** The first prices, and all of them in the title. */
function Prices({ lines, what = "" }: { readonly lines: readonly Line[]; readonly what?: string }) {
  const texts = lines.map(([name, unit, usd]) => `${name} ${usdText(usd)}${name === unit ? "" : ` per ${unit}`}`);
  const more = texts.length > shownLines ? `, and ${texts.length - shownLines} more` : "";
  return (
    <span className="text-xs text-muted tabular-nums" title={texts.join("\n")}>
      {what} {texts.slice(0, shownLines).join(", ")}
      {more}
    </span>
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
