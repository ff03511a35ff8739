import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { Time } from "../../components/time.tsx";
import { bytes } from "../../lib/format.ts";
import { statusLabel } from "../../lib/statuses.ts";
import { remaining, useNow } from "../../lib/time.ts";
import { Preview } from "./preview.tsx";

interface Props {
  /** What it is, in a word or two. */
  readonly title: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly id: string;
  readonly url: string | null;
  readonly mime: string;
  readonly size: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  readonly status?: string | undefined;
  readonly children?: ReactNode;
}

const secondsNearEnd = 3600;

export function FileCard({ title, createdAt, id, url, mime, size, expiresAt, status, children }: Props) {
  const now = useNow();
  const isGone = expiresAt * 1000 <= now;
  return (
    <Card className="flex h-full flex-col gap-3 p-4">
      <Preview url={isGone ? null : url} mime={mime} name={id} />
      <div className="flex min-w-0 flex-col gap-0.5">
        <h3 className="font-medium wrap-anywhere">{title}</h3>
        <p className="text-xs text-muted">
          <Time at={createdAt} /> · {mime} · {bytes(size)}
        </p>
        <code title={id} className="truncate text-xs text-muted">
          {id}
        </code>
      </div>
      <div className="flex flex-wrap gap-1.5">
        {status && status !== "active" && <Badge tone="warn">{statusLabel(status)}</Badge>}
        <Badge tone={expiresAt * 1000 - now < secondsNearEnd * 1000 ? "warn" : "plain"}>
          {isGone ? "Deleted" : `Deleted in ${remaining(expiresAt, now)}`}
        </Badge>
      </div>
      {children && <div className="mt-auto flex flex-wrap gap-2">{children}</div>}
    </Card>
  );
}
