import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { bytes } from "../../lib/format.ts";
import { remaining, useNow } from "../../lib/time.ts";
import { Preview } from "./preview.tsx";

interface Props {
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

export function FileCard({ id, url, mime, size, expiresAt, status, children }: Props) {
  const now = useNow();
  const isGone = expiresAt * 1000 <= now;
  return (
    <Card className="flex h-full flex-col gap-3 p-4">
      <Preview url={isGone ? null : url} mime={mime} name={id} />
      <code className="text-xs wrap-anywhere">{id}</code>
      <div className="flex flex-wrap gap-1.5">
        <Badge>{mime}</Badge>
        <Badge>{bytes(size)}</Badge>
        {status && status !== "active" && <Badge tone="warn">{status}</Badge>}
        <Badge tone={expiresAt * 1000 - now < secondsNearEnd * 1000 ? "warn" : "good"}>
          {isGone ? "gone" : `${remaining(expiresAt, now)} to live`}
        </Badge>
      </div>
      {children && <div className="mt-auto flex flex-wrap gap-2">{children}</div>}
    </Card>
  );
}
