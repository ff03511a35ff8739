import type { ReactNode } from "react";
import { Card } from "./card.tsx";
import { CopyButton } from "./copy-button.tsx";

/** The id of what a page shows, for its introduction. */
export function CopiedId({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <span className="flex flex-wrap items-center gap-2">
      <code className="text-xs wrap-anywhere">{id}</code>
      <CopyButton text={id} what={what} />
    </span>
  );
}

interface Fact {
  readonly name: string;
  readonly value: ReactNode;
}

/** Names may repeat. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <Card>
      <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-2 lg:grid-cols-3">
        {facts.map(({ name, value }, index) => (
          <div key={index} className="flex min-w-0 flex-col gap-0.5">
            <dt className="text-xs text-muted">{name}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
