import { Link } from "@tanstack/react-router";
import type { Model } from "../../api/models.ts";
import { Badge } from "../../components/badge.tsx";
import { buttonClass } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { count } from "../../lib/format.ts";
import { PriceTable } from "./price-table.tsx";

const playable = new Set(["text", "image", "video", "audio", "embeddings"]);

/** Models with more prices than this show the first ones, and hide the others behind a switch. */
const shownPrices = 4;

export function ModelCard({ model }: { readonly model: Model }) {
  const { id, name, description, type, context_length, features, x_pricing, x_upstreams } = model;
  const places = [...new Set(x_upstreams.flatMap(({ region }) => region ?? []))];
  const prices = Object.keys(x_pricing).length;
  return (
    <Card className="flex h-full flex-col gap-3">
      <div className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h3 className="font-semibold wrap-anywhere">{name}</h3>
          <code className="text-xs wrap-anywhere text-muted">{id}</code>
        </div>
        <Badge tone="accent">{type}</Badge>
      </div>
      {description && <p className="text-muted">{description}</p>}
      <p className="flex flex-wrap gap-1.5">
        {context_length > 0 && <Badge>{count(context_length)} tokens</Badge>}
        {places.map((place) => (
          <Badge key={place}>{place}</Badge>
        ))}
        {features.slice(0, 6).map((feature) => (
          <Badge key={feature}>{feature}</Badge>
        ))}
      </p>
      <PriceTable model={model} first={shownPrices} />
      {prices > shownPrices && (
        <details>
          <summary className="text-xs font-medium text-muted">All {prices} prices</summary>
          <div className="mt-2">
            <PriceTable model={model} />
          </div>
        </details>
      )}
      <div className="mt-auto flex flex-wrap gap-2 pt-1">
        <CopyButton text={id} what={id} label="Copy id" />
        {playable.has(type) && (
          <Link
            to="/playground"
            search={{ model: id }}
            className={buttonClass("secondary", true)}
            aria-label={`Try it: ${name}`}
          >
            Try it
          </Link>
        )}
      </div>
    </Card>
  );
}
