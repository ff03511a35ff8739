import { expect, test } from "vitest";
import { type Described, pathWith, readDocument } from "../support/openapi.ts";
import type { Customer } from "../support/service.ts";
import { providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

type Body = Readonly<Record<string, unknown>>;

/** Calls described operations by their examples. */
async function openCaller() {
  const { service } = running;
  const document = await readDocument(service.baseUrl);
  const rich = await service.account("100");
  const spoken = await rich.post("/v1/audio/speech", { model: "local/speech", input: "Hello." });
  const recording = new File([await spoken.blob()], "hello.wav", { type: "audio/wav" });

  /** The form of an example: its bytes are a real recording. */
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
    {
      body,
      form = {},
      headers = {},
    }: { body?: unknown; form?: Record<string, string>; headers?: Record<string, string> },
  ): Promise<Response> {
    const content = isForm(described)
      ? { body: formOf(described, form) }
      : { body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body) };
    return fetch(service.baseUrl + pathWith(described.path) + (described.path.includes(":stream") ? "?alt=sse" : ""), {
      method: "POST",
      ...content,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(!isForm(described) && { "content-type": "application/json" }),
        ...headers,
      },
    });
  }
  return { service, document, rich, recording, post, isForm };
}

const examplesOf = ({ operation }: Described): readonly (readonly [name: string, value: Body])[] =>
  Object.entries(operation.requestBody?.content["application/json"]?.examples ?? {}).map(
    ([name, { value }]) => [name, value] as const,
  );

const dataOf = (events: string): readonly unknown[] =>
  [...events.matchAll(/^data: (.*)$/gm)].flatMap(([, data = ""]) =>
    data === "[DONE]" ? [] : [JSON.parse(data) as unknown],
  );

/** The values of an answer's body that its description is about: the JSON, or the data of each event. */
async function valuesOf(response: Response): Promise<{ type: string; values: readonly unknown[] }> {
  const [type = ""] = (response.headers.get("content-type") ?? "").split(";");
  if (type === "application/json") return { type, values: [await response.json()] };
  const text = await response.text();
  return { type, values: type === "text/event-stream" ? dataOf(text) : [text] };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Every time an example is called, these differ. */
const times: Readonly<Record<string, number>> = {
  created: 1_795_000_000,
  created_at: 1_795_000_000,
  completed_at: 1_795_000_000,
  links_expire_at: 1_795_003_600,
  expires_at: 1_795_086_400,
};

/** An answer with the same ids, times and addresses in every run, for the document. */
function settled(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => settled(each));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, settled(each, name)]));
  if (typeof value === "number") return times[key] ?? value;
  if (typeof value !== "string") return value;
  return value
    .replace(running.service.baseUrl, "https://inference.example")
    .replace(/^http:.*/, "https://storage.example/file?signature=...")
    .replace(/\b([a-z]+)_[\w-]{20,}/g, "$1_2kT9vQ4mXw7pLr3sZb8n");
}

test("every example of a request succeeds, and its answer has the described shape", async () => {
  const { document, rich, post, isForm } = await openCaller();
  const posts = document.operations.filter(({ operation }) => operation.requestBody !== undefined);
  const answers: Record<string, unknown> = {};
  for (const described of posts.filter(({ path }) => !path.endsWith("/complete"))) {
    const { path, operation } = described;
    const examples = isForm(described) ? [["form", {}] as const] : examplesOf(described);
    expect([path, examples.length]).not.toEqual([path, 0]);
    for (const [name, body] of examples) {
      const response = await post(described, rich, { body });
      const { type, values } = await valuesOf(response);
      const at = `${path} ${name}`;
      const isStream = body["stream"] === true || path.includes(":stream");
      expect([at, response.status, type === "text/event-stream"]).toEqual([at, 200, isStream]);
      expect([at, values.length]).not.toEqual([at, 0]);
      const faults = values.flatMap((value) => document.faultsOf(described, { status: 200, type, value }));
      expect([at, faults]).toEqual([at, []]);
      if (type === "application/json") answers[operation.operationId] ??= settled(values[0]);
    }
  }
  for (const described of document.operations.filter(
    ({ method, path }) => method === "GET" && path.includes("/models/"),
  )) {
    const value: unknown = await (await fetch(running.service.baseUrl + pathWith(described.path))).json();
    expect(document.faultsOf(described, { status: 200, type: "application/json", value })).toEqual([]);
    answers[described.operation.operationId] = settled(value);
  }
  // `vitest run -u` records them.
  await expect(`${JSON.stringify(answers, null, 2)}\n`).toMatchFileSnapshot("../../api/openapi/answers.json");
}, 120_000);

const isOurs = (name: string) =>
  /^(x-(request-id|should-retry|ignored-params|ratelimit-|xm-)|request-id|retry-after|www-authenticate|idempotent-replayed)/.test(
    name,
  );

interface Sent {
  readonly from?: Pick<Customer, "key">;
  readonly body?: unknown;
  readonly form?: Record<string, string>;
  readonly headers?: Record<string, string>;
}

/** Hints that a call is answered without. */
function hintsOf(path: string, body: Body): Body {
  if (path.includes("completions")) return { model: providerModel, metadata: { team: "a" } };
  if (path.endsWith(":batchEmbedContents"))
    return { requests: (body["requests"] as Body[]).map((each) => ({ ...each, taskType: "RETRIEVAL_QUERY" })) };
  if (path.endsWith(":embedContent")) return { taskType: "RETRIEVAL_QUERY" };
  if (path.startsWith("/v1beta"))
    return { safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }] };
  if (path === "/v1/images/generations") return { style: "vivid" };
  return { metadata: { user_id: "a" }, safety_identifier: "a" };
}

/** What only other circumstances bring. */
const testedElsewhere = ["504 x-should-retry"];

test("each answer of a call has exactly the headers that are described", async () => {
  const { service, document, rich, recording, post } = await openCaller();
  const unfunded = await service.account("0");
  const frozen = await service.account("1");
  await service.admin("PATCH", `/accounts/${frozen.id}`, { frozen: true });
  const deleted = ((await (await rich.post("/v1/uploads", { bytes: 10, mime: "image/png" })).json()) as { id: string })
    .id;
  await fetch(`${service.baseUrl}/v1/uploads/${deleted}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${rich.key}` },
  });
  const calls = document.operations.filter(
    ({ method, operation }) =>
      method === "POST" && "x-xm-cost-usd" in (document.responseOf(operation, 200)?.headers ?? {}),
  );
  expect(calls.length).toBeGreaterThan(14);

  const problems = new Set<string>();
  const described = new Set<string>();
  const sent = new Set<string>(testedElsewhere);
  for (const call of calls) {
    const { path, operation } = call;
    const [[, body] = ["", {}]] = examplesOf(call);
    const oncePerMinute = await service.account("1", { limits: { requests_per_minute: 1 } });
    const fewTokens = await service.account("1", { limits: { tokens_per_minute: 1 } });
    const trigger = (status: number) =>
      JSON.parse(
        JSON.stringify(body).replaceAll(/Say hello\.|Hello\.|A sunrise|A text|(?<=")one(?=")/g, `error:${status}`),
      ) as Body;
    const idempotent = { headers: { "idempotency-key": path } };
    const requests: readonly Sent[] = [
      { body },
      { body: { ...body, stream: true } },
      { body: { ...body, ...hintsOf(path, body) } },
      { ...idempotent, body },
      { ...idempotent, body },
      { ...idempotent, body: { ...body, user: "other" }, form: { prompt: "other" } },
      { body: "[" },
      { body: { ...body, model: "none/none" }, form: { model: "none/none" } },
      { from: unfunded, body },
      { from: frozen, body },
      { from: { key: "" }, body },
      { from: oncePerMinute, body },
      { from: oncePerMinute, body },
      { from: fewTokens, body },
      ...[400, 429, 502, 503, 504].map((status) => ({ body: trigger(status), form: { prompt: `error:${status}` } })),
      ...(path === "/v1/uploads" ? [{ body: recording, headers: { "content-type": "audio/wav" } }] : []),
      ...["upl_none", deleted].map((id) => ({ body: { model: "local/transcription", input: { file: id } } })),
    ];
    const byStatus = new Map<number, Set<string>>();
    for (const { from = rich, ...request } of requests) {
      const response = await post(call, from, request);
      const { type, values } = await valuesOf(response);
      const { status } = response;
      const names = byStatus.get(status) ?? new Set();
      byStatus.set(status, names);
      for (const name of response.headers.keys()) if (isOurs(name)) names.add(name);
      const headers = Object.entries(document.responseOf(operation, status)?.headers ?? {});
      for (const [name, header] of headers)
        if (document.isRequired(header) && !response.headers.has(name)) problems.add(`${path} ${status}: no ${name}`);
      if (status !== 200)
        for (const fault of values.flatMap((value) => document.faultsOf(call, { status, type, value })))
          problems.add(`${path} ${status}: ${fault}`);
    }
    for (const [status, names] of byStatus) {
      const headers = Object.keys(document.responseOf(operation, status)?.headers ?? {}).map((each) =>
        each.toLowerCase(),
      );
      const missing = headers.filter((name) => isOurs(name) && !names.has(name));
      for (const name of names)
        if (!headers.includes(name)) problems.add(`${path} ${status}: ${name} is not described`);
      // An answer may need what only some calls can do, such as to name an upload; its headers are the same for all.
      if (status === 200) for (const name of missing) problems.add(`${path} ${status}: ${name} is not sent`);
      for (const name of names) sent.add(`${status} ${name}`);
      for (const name of headers.filter(isOurs)) described.add(`${status} ${name}`);
    }
    const statuses = Object.keys(operation.responses).filter((status) => byStatus.has(Number(status)));
    expect([path, statuses]).toEqual([
      path,
      expect.arrayContaining(path.includes("{id}") ? ["400", "401", "404"] : ["200", "400", "401", "403"]),
    ]);
  }
  expect([...problems]).toEqual([]);
  expect([...described].filter((each) => !sent.has(each))).toEqual([]);
}, 180_000);

/** Bodies that no route takes, with the type that they claim. */
const malformed: readonly (readonly [type: string, body: string | Uint8Array<ArrayBuffer>, encoding?: string])[] = [
  ["application/json", ""],
  ["application/json", "["],
  ["application/json", "null"],
  ["application/json", "[]"],
  ["application/json", '"text"'],
  ["application/json", "{}"],
  ["application/json", '{"model":1,"messages":1,"input":1,"prompt":1,"contents":1,"requests":1,"content":1}'],
  ["application/json", `{"model":"local/chat","messages":${"[".repeat(5_000)}${"]".repeat(5_000)}}`],
  ["application/json", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ["application/json", "{}", "gzip"],
  ["application/json", "{}", "unknown"],
  ["application/json; charset=utf-16", "{}"],
  ["text/plain", "{}"],
  ["multipart/form-data", "--x--"],
  ["multipart/form-data; boundary=x", "--x--\r\n"],
  ["multipart/form-data; boundary=x", '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nlocal/chat'],
];

test("every refusal of a malformed request has a described status, headers and shape", async () => {
  const { service, document, rich } = await openCaller();
  const problems: string[] = [];
  for (const described of document.operations.filter(({ method }) => method === "POST")) {
    const { path, operation } = described;
    for (const [type, body, encoding] of malformed) {
      const response = await fetch(service.baseUrl + pathWith(path), {
        method: "POST",
        body,
        headers: {
          authorization: `Bearer ${rich.key}`,
          "content-type": type,
          ...(encoding && { "content-encoding": encoding }),
        },
      });
      const { status } = response;
      const at = `${path} ${type} ${encoding ?? ""} ${String(body).slice(0, 20)}: ${status}`;
      const text = await response.text();
      const headers = Object.keys(document.responseOf(operation, status)?.headers ?? {}).map((name) =>
        name.toLowerCase(),
      );
      if (status < 400 || status >= 500) problems.push(at);
      for (const name of response.headers.keys())
        if (isOurs(name) && !headers.includes(name)) problems.push(`${at}: ${name}`);
      const faults = document.faultsOf(described, { status, type: "application/json", value: JSON.parse(text) });
      problems.push(...faults.map((fault) => `${at}: ${fault}`));
    }
  }
  expect(problems).toEqual([]);
}, 120_000);

test("another method is a 405 that names those that are described, in the shape of the path", async () => {
  const { service, document, rich } = await openCaller();
  const problems: string[] = [];
  for (const described of document.operations) {
    const { path } = described;
    const methods = document.operations.filter((each) => each.path === path).map(({ method }) => method);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((each) => !methods.includes(each))) {
      // An unknown route, as in OpenAI's API.
      if (`${method} ${path}` === "POST /v1/responses/{id}") continue;
      const headers = { authorization: `Bearer ${rich.key}` };
      const response = await fetch(service.baseUrl + pathWith(path), { method, headers });
      const { status } = response;
      const allowed = (response.headers.get("allow") ?? "").split(", ").filter((each) => each !== "HEAD");
      const at = `${method} ${path}: ${status} ${allowed.join()}`;
      if (status !== 405 || allowed.toSorted().join() !== methods.toSorted().join()) problems.push(at);
      const refusal = Object.keys(described.operation.responses).find((each) => each.startsWith("4"));
      const answer = { status: Number(refusal), type: "application/json", value: await response.json() };
      problems.push(...document.faultsOf(described, answer).map((fault) => `${at}: ${fault}`));
    }
  }
  expect(problems).toEqual([]);
});
