import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useDeferredValue } from "react";
import { type Model, modelsQuery, type Performance, performanceQuery } from "../../api/models.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Select } from "../../components/select.tsx";
import { useChoice } from "../../components/use-choice.ts";
import { count } from "../../lib/format.ts";
import { type Order, orders, sorted, typeNames } from "../../lib/models.ts";
import { ModelCard } from "./model-card.tsx";

const route = getRouteApi("/models");

const types = [
  { value: "", label: "All types" },
  ...Object.entries(typeNames).map(([value, label]) => ({ value, label })),
];

function matches({ id, name, description, type }: Model, q: string, wanted: string | undefined): boolean {
  const text = `${id} ${name} ${description}`.toLowerCase();
  return (
    (!wanted || type === wanted) &&
    q
      .toLowerCase()
      .split(/\s+/)
      .every((word) => text.includes(word))
  );
}

export function Models() {
  const { q = "", type } = route.useSearch();
  const navigate = route.useNavigate();
  const shown = useDeferredValue(q);
  const [order, setOrder] = useChoice("order", orders, "catalog");
  const { data: performance = unknown } = useQuery(performanceQuery);
  return (
    <Page title="Models" intro="What can be called now, with prices in USD.">
      <div className="grid gap-3 sm:grid-cols-[minmax(0,1fr)_11rem_13rem]">
        <Field
          label="Search"
          type="search"
          placeholder="Name, provider or what it does"
          value={q}
          onChange={({ target }) =>
            void navigate({ search: (before) => ({ ...before, q: target.value || undefined }), replace: true })
          }
        />
        <Select
          label="Type"
          options={types}
          value={type ?? ""}
          onChange={(value) => void navigate({ search: (before) => ({ ...before, type: value || undefined }) })}
        />
        <Select label="Order" options={orders} value={order} onChange={(value) => setOrder(value as Order)} />
      </div>
      <QueryView query={useQuery(modelsQuery)}>
        {(models) => (
          <Found
            models={sorted(
              models.filter((model) => matches(model, shown, type)),
              order,
              performance,
            )}
            performance={performance}
          />
        )}
      </QueryView>
    </Page>
  );
}

const unknown: ReadonlyMap<string, Performance> = new Map();

interface FoundProps {
  readonly models: readonly Model[];
  readonly performance: ReadonlyMap<string, Performance>;
}

function Found({ models, performance }: FoundProps) {
  if (models.length === 0)
    return (
      <EmptyState title="No model matches">
        <p>Search for a part of the name, such as “mini”, or take the type off.</p>
      </EmptyState>
    );
  return (
    <section className="flex flex-col gap-4">
      <h2 className="text-xs font-medium text-muted" aria-live="polite">
        {count(models.length)} {models.length === 1 ? "model" : "models"}
      </h2>
      <ul className="grid gap-4 lg:grid-cols-2">
        {models.map((model) => (
          <li key={model.id}>
            <ModelCard model={model} performance={performance.get(model.id)} />
          </li>
        ))}
      </ul>
    </section>
  );
}
