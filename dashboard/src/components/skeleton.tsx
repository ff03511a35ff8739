interface Props {
  readonly rows?: number;
  readonly className?: string;
}

/** A placeholder for loading content. */
export function Skeleton({ rows = 4, className = "h-10" }: Props) {
  return (
    <output className="flex w-full flex-col gap-3">
      <span className="sr-only">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} aria-hidden="true" className={`animate-pulse rounded-lg bg-raised ${className}`} />
      ))}
    </output>
  );
}
