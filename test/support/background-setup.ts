import OpenAI from "openai";
import { chatProvider } from "./formats-service.ts";
import { type Client, type Customer, eventually } from "./service.ts";

/** Responses in the background, as their callers see them. */

export const path = "/v1/responses";
type Fields = Readonly<Record<string, unknown>>;
export type Event = OpenAI.Responses.ResponseStreamEvent & { readonly sequence_number: number };
const openStatuses: readonly unknown[] = ["queued", "in_progress"];

/** OpenAI's models speak the format. */
export const native = { ...chatProvider, name: "native" };

export const at = ({ baseUrl }: Pick<Client, "baseUrl">, { key }: Customer) =>
  new OpenAI({ apiKey: key, baseURL: `${baseUrl}/v1`, maxRetries: 0 });

export const ended = (client: OpenAI, id: string): Promise<OpenAI.Responses.Response> =>
  eventually(async () => {
    const response = await client.responses.retrieve(id);
    return !openStatuses.includes(response.status) && response;
  });

export const read = async (client: OpenAI, id: string, starting_after?: number): Promise<Event[]> =>
  (await Array.fromAsync(
    await client.responses.retrieve(id, { stream: true, ...(starting_after !== undefined && { starting_after }) }),
  )) as Event[];

export const requestOf = ({ baseUrl }: Pick<Client, "baseUrl">, { key }: Customer, rest: string, method = "GET") =>
  fetch(`${baseUrl}${path}/${rest}`, { method, headers: { authorization: `Bearer ${key}` } });

/** The id of the response that a request has created. */
export const idIn = ({ headers }: Response): string => (headers.get("location") ?? "").replace(/^.*\//, "");

export const errorOf = async (answering: Promise<Response>) => {
  const answer = await answering;
  const { error } = (await answer.json()) as { error: Fields };
  return [answer.status, error["code"], error["param"]];
};

/** A gate of the provider that holds a stream before its event of this number. */
export const held = (before: number) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { answer: { beforeEvent: { [before]: promise } }, open: resolve };
};

export const textOf = (response: OpenAI.Responses.Response | undefined): string =>
  (response?.output ?? [])
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");
export const numbers = (events: readonly Event[]) => events.map(({ sequence_number }) => sequence_number);
export const idsOf = (events: readonly object[]) =>
  new Set(events.flatMap((event) => ("response" in event ? [(event.response as { id: string }).id] : [])));
