import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string; readonly body?: unknown };
  readonly response: { readonly status_code: number; readonly content?: unknown } | null;
}

interface Event {
  readonly ScenarioFinished?: {
    readonly recorder: { readonly label: string; readonly interactions: Readonly<Record<string, Interaction>> };
  };
}

export interface Summary {
  readonly cases: number;
  readonly operations: number;
  readonly statuses: ReadonlyMap<number, number>;
  readonly unanswered: number;
  /** The first interaction of each kind: a 5xx other than 503, or a request without a response. */
  readonly faults: ReadonlyMap<string, Interaction>;
}

/** Counts the responses in Schemathesis' report, one event per line. */
export async function readReport(file: string): Promise<Summary> {
  const statuses = new Map<number, number>();
  const operations = new Set<string>();
  const faults = new Map<string, Interaction>();
  let cases = 0;
  let unanswered = 0;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const { recorder } = (JSON.parse(line) as Event).ScenarioFinished ?? {};
    for (const interaction of Object.values(recorder?.interactions ?? {})) {
      const { method, uri } = interaction.request;
      const status = interaction.response?.status_code;
      cases += 1;
      if (recorder) operations.add(recorder.label);
      if (status === undefined) unanswered += 1;
      else statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const isFault = status === undefined || (status >= 500 && status !== 503);
      const kind = `${status ?? "no answer"} ${recorder?.label ?? `${method} ${uri}`}`;
      if (isFault && !faults.has(kind)) faults.set(kind, interaction);
    }
  }
  return { cases, operations: operations.size, statuses, unanswered, faults };
}
