/** Quotes text, and escapes a leading character that spreadsheets would take for a formula. */
function cell(value: string | number | null): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** An exact amount, which stays a number. */
export interface Amount {
  readonly usd: string;
}

/** Renders CSV (RFC 4180). */
export const csvOf = (lines: readonly (readonly (string | number | null | Amount)[])[]): string =>
  lines
    .map((line) => line.map((value) => (typeof value === "object" && value ? value.usd : cell(value))).join(","))
    .concat("")
    .join("\r\n");
