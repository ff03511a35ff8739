interface Props {
  readonly label: string;
  /** From 0 to 1; absent while it is not known. */
  readonly value?: number | undefined;
  readonly tone?: "accent" | "warn" | "bad";
}

export function ProgressBar({ label, value, tone = "accent" }: Props) {
  return <progress aria-label={label} value={value} max={1} data-tone={tone} className="progress" />;
}
