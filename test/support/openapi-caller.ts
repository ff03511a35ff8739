import { type Described, pathWith, readDocument } from "./openapi.ts";
import type { Client, Customer } from "./service.ts";

export type Body = Readonly<Record<string, unknown>>;

/** A call's data, and its sender. */
export interface Sent {
  readonly from?: Pick<Customer, "key">;
  readonly body?: unknown;
  readonly form?: Record<string, string>;
  readonly headers?: Record<string, string>;
  /** The form of a stream in Gemini's format; the default is events. */
  readonly alt?: "sse" | "json";
}

/** Calls described operations by their examples. */
export async function openCaller(service: Client) {
  const document = await readDocument(service.baseUrl);
  const rich = await service.account("100");
  const { data } = await service.admin<{ data: { id: string }[] }>("GET", `/accounts/${rich.id}/keys`);
  await service.admin("PATCH", `/keys/${data[0]?.id}`, { scopes: ["inference", "manage"] });
  const spoken = await rich.post("/v1/audio/speech", { model: "local/speech", input: "Hello." });
  const recording = new File([await spoken.blob()], "hello.wav", { type: "audio/wav" });

  /** The form of an example, with a real recording as its bytes. */
  function formOf({ operation }: Described, more: Readonly<Record<string, string>>): FormData {
    const form = new FormData();
    const { example = {}, schema } = operation.requestBody?.content["multipart/form-data"] ?? { schema: {} };
    for (const [name, value] of Object.entries({ ...example, ...more }))
      form.set(name, schema.properties?.[name]?.format === "binary" ? recording : value);
    return form;
  }
  const isForm = ({ operation }: Described) => operation.requestBody?.content["application/json"] === undefined;

  function post(
    described: Described,
    { key }: Pick<Customer, "key">,
    { body, form = {}, headers = {}, alt = "sse" }: Sent,
  ): Promise<Response> {
    const content = isForm(described)
      ? { body: formOf(described, form) }
      : { body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body) };
    return fetch(
      service.baseUrl + pathWith(described.path) + (described.path.includes(":stream") ? `?alt=${alt}` : ""),
      {
        method: "POST",
        ...content,
        headers: {
          ...(key && { authorization: `Bearer ${key}` }),
          ...(!isForm(described) && { "content-type": "application/json" }),
          ...headers,
        },
      },
    );
  }
  return { document, rich, recording, post, isForm };
}

export const examplesOf = ({ operation }: Described): readonly (readonly [name: string, value: Body])[] =>
  Object.entries(operation.requestBody?.content["application/json"]?.examples ?? {}).map(
    ([name, { value }]) => [name, value] as const,
  );

const dataOf = (events: string): readonly unknown[] =>
  [...events.matchAll(/^data: (.*)$/gm)].flatMap(([, data = ""]) =>
    data === "[DONE]" ? [] : [JSON.parse(data) as unknown],
  );

/** The described values of a response's body: the JSON, or the data of each event. */
export async function valuesOf(response: Response): Promise<{ type: string; values: readonly unknown[] }> {
  const [type = ""] = (response.headers.get("content-type") ?? "").split(";");
  if (type === "application/json") return { type, values: [await response.json()] };
  const text = await response.text();
  return { type, values: type === "text/event-stream" ? dataOf(text) : [text] };
}

/** True for headers that the document describes: those of this service, and some of HTTP. */
export const isOurs = (name: string) =>
  /^(x-(request-id|should-retry|ignored-params|ratelimit-|xm-)|request-id|retry-after|www-authenticate|idempotent-replayed)/.test(
    name,
  );
