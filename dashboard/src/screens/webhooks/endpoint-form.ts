import type { Endpoint, EndpointPatch, NewEndpoint } from "../../api/webhooks.ts";

export type Event = NewEndpoint["events"][number];

/** The fields as the user types them. */
export interface EndpointForm {
  readonly url: string;
  readonly name: string;
  readonly events: readonly Event[];
  /** One header per line. Empty: those of an edited endpoint stay. */
  readonly headers: string;
  readonly removeHeaders: boolean;
  readonly includeResult: boolean;
}

export const formOf = (endpoint: Endpoint | undefined): EndpointForm => ({
  url: endpoint?.url ?? "",
  name: endpoint?.name ?? "",
  events: (endpoint?.events as readonly Event[] | undefined) ?? ["job.*"],
  headers: "",
  removeHeaders: false,
  includeResult: endpoint?.include_result ?? false,
});

function headersOf(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split(":");
      return [name.trim(), value.join(":").trim()];
    }),
  );
}

export function toPatch({ name, headers, removeHeaders, includeResult, ...form }: EndpointForm) {
  const given = headersOf(headers);
  return {
    url: form.url.trim(),
    name: name.trim() || null,
    events: [...form.events],
    include_result: includeResult,
    ...((removeHeaders || Object.keys(given).length > 0) && { headers: given }),
  } satisfies EndpointPatch;
}

export function toNewEndpoint(form: EndpointForm): NewEndpoint {
  const { name, ...rest } = toPatch(form);
  return { ...rest, ...(name !== null && { name }) };
}
