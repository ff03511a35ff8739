interface Props {
  readonly label: string;
  /** A fraction from 0 to 1; undefined until it is known. */
  readonly value?: number | undefined;
  readonly tone?: "accent" | "warn" | "bad";
}

export function ProgressBar({ label, value, tone = "accent" }: Props) {
  return <progress aria-label={label} value={value} max={1} data-tone={tone} className="progress" />;
}
