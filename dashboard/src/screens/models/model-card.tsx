import { Link } from "@tanstack/react-router";
import type { Model, Performance } from "../../api/models.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { count, duration } from "../../lib/format.ts";
import { availabilityText, featureName, typeNames } from "../../lib/models.ts";
import { PriceTable } from "./price-table.tsx";
import { TryIt } from "./try-it.tsx";

const shownPrices = 4;
const shownFeatures = 6;

interface Props {
  readonly model: Model;
  readonly performance: Performance | undefined;
}

export function ModelCard({ model, performance }: Props) {
  const { id, name, description, type, context_length, features, x_pricing, x_upstreams } = model;
  const places = [...new Set(x_upstreams.flatMap(({ region }) => region ?? []))];
  const more = Object.keys(x_pricing).length - shownPrices;
  const [provider = "", own = ""] = id.split("/");
  const toModel = { to: "/models/$provider/$name", params: { provider, name: own } } as const;
  return (
    <Card className="flex h-full flex-col gap-3">
      <div className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h3 className="font-semibold wrap-anywhere">
            <Link {...toModel} className="underline-offset-4 hover:underline">
              {name}
            </Link>
          </h3>
          <code className="text-xs wrap-anywhere text-muted">{id}</code>
        </div>
        <Badge tone="accent">{typeNames[type]}</Badge>
      </div>
      {description && <p className="text-muted">{description}</p>}
      <p className="flex flex-wrap gap-1.5">
        {context_length > 0 && <Badge>{count(context_length)} tokens of context</Badge>}
        {places.map((place) => (
          <Badge key={place}>In {place}</Badge>
        ))}
        {features.slice(0, shownFeatures).map((feature) => (
          <Badge key={feature}>{featureName(feature)}</Badge>
        ))}
      </p>
      {performance && <Performed performance={performance} />}
      <PriceTable model={model} first={shownPrices} />
      <div className="mt-auto flex flex-wrap items-center gap-2 pt-1">
        <CopyButton text={id} what={id} label="Copy id" />
        <TryIt model={model} small />
        {more > 0 && (
          <Link {...toModel} className="text-xs text-accent underline" aria-label={`All prices of ${name}`}>
            {count(more)} more {more === 1 ? "price" : "prices"}
          </Link>
        )}
      </div>
    </Card>
  );
}

/** The known figures of the last 24 hours. */
function Performed({ performance }: { readonly performance: Performance }) {
  const { availability, first_token_ms: first, total_ms: total } = performance;
  const known = [
    availability !== null && `${availabilityText(availability)} available`,
    first === null ? total !== null && `answers in ${duration(total)}` : `first token after ${duration(first)}`,
  ].filter((each) => each !== false);
  return known.length > 0 && <p className="text-xs text-muted">Last 24 hours: {known.join(", ")}</p>;
}
