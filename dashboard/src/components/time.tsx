import { exactTime, relativeTime, useNow } from "../lib/time.ts";

interface Props {
  /** Unix seconds. */
  readonly at: number | null | undefined;
  readonly absent?: string;
}

/** A time relative to now, with the exact time as its title. */
export function Time({ at, absent = "never" }: Props) {
  const now = useNow();
  if (at === null || at === undefined) return <span className="text-muted">{absent}</span>;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exactTime(at)} className="whitespace-nowrap">
      {relativeTime(at, now)}
    </time>
  );
}
