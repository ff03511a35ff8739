import { expect, test } from "vitest";
import { pathWith } from "../support/openapi.ts";
import { examplesOf, isOurs, openCaller, valuesOf } from "../support/openapi-caller.ts";
import { serviceOfFile } from "../support/service-setup.ts";
import { insertBatches } from "../support/stored-batches.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** topups-calls.test.ts has a chain, webhook-routes.test.ts and provider-keys.test.ts have keys to seal secrets. */
const needsMore = (path: string) => /^\/v1\/(topups|webhooks|provider-keys)/.test(path);

/** These values differ at every call of an example. */
const times: Readonly<Record<string, number>> = {
  created: 1_795_000_000,
  created_at: 1_795_000_000,
  completed_at: 1_795_000_000,
  links_expire_at: 1_795_003_600,
  expires_at: 1_795_086_400,
};

/** A response with the same ids, times and addresses in every run, for the document. */
function settled(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => settled(each));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, settled(each, name)]));
  if (typeof value === "number") return times[key] ?? value;
  if (typeof value !== "string") return value;
  return value
    .replace(running.service.baseUrl, "https://inference.example")
    .replace(/^http:.*/, "https://storage.example/file?signature=...")
    .replace(/\b([a-z]+_|file-|chatcmpl-local-)[\w-]{20,}/g, (_, prefix: string) => `${prefix}2kT9vQ4mXw7pLr3sZb8n`)
    .replace(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, "2026-11-18T11:06:40.000Z")
    .replace(/^live_\w{3}\.\.\.$/, "live_Ab3...");
}

test("every example of a request succeeds, and its answer has the described shape", async () => {
  const { document, rich, post, isForm } = await openCaller(running.service);
  const posts = document.operations.filter(
    ({ method, operation }) => method === "POST" && operation.requestBody !== undefined,
  );
  const answers: Record<string, unknown> = {};
  for (const described of posts.filter(({ path }) => !path.endsWith("/complete") && !needsMore(path))) {
    const { path, operation } = described;
    const examples = isForm(described) ? [["form", {}] as const] : examplesOf(described);
    expect([path, examples.length]).not.toEqual([path, 0]);
    for (const [name, body] of examples) {
      const response = await post(described, rich, { body });
      const { type, values } = await valuesOf(response);
      const at = `${path} ${name}`;
      const isStream = body["stream"] === true || body["stream_format"] === "sse" || path.includes(":stream");
      const status = "201" in operation.responses ? 201 : 200;
      expect([at, response.status, type === "text/event-stream"]).toEqual([at, status, isStream]);
      expect([at, values.length]).not.toEqual([at, 0]);
      const faults = values.flatMap((value) => document.faultsOf(described, { status, type, value }));
      expect([at, faults]).toEqual([at, []]);
      if (type === "application/json") answers[operation.operationId] ??= settled(values[0]);
    }
  }
  for (const described of document.operations.filter(({ path }) => path.includes("/models/{"))) {
    if (described.method !== "GET") continue;
    const value: unknown = await (await fetch(running.service.baseUrl + pathWith(described.path))).json();
    answers[described.operation.operationId] = settled(value);
  }
  // `vitest run -u` records them.
  await expect(`${JSON.stringify(answers, null, 2)}\n`).toMatchFileSnapshot("../../api/http/openapi/answers.json");
});

test("a stream in Gemini's format is an array without alt=sse", async () => {
  const { document, rich, post } = await openCaller(running.service);
  const streams = document.operations.filter(({ path }) => path.includes(":stream"));
  expect(streams).toHaveLength(1);
  for (const described of streams) {
    const [[, body] = []] = examplesOf(described);
    const { type, values } = await valuesOf(await post(described, rich, { body, alt: "json" }));
    expect([type, values]).toEqual(["application/json", [expect.any(Array)]]);
    expect(document.faultsOf(described, { status: 200, type, value: values[0] })).toEqual([]);
  }
});

test("responses to reads and deletions have the described shape and headers", async () => {
  const { service } = running;
  const { document, rich, recording } = await openCaller(service);
  const create = async (path: string, body: unknown, type = "application/json") =>
    (await (await rich.post(path, body, { headers: { "content-type": type } })).json()) as { id: string };
  const response = await create("/v1/responses", { model: "local/chat", input: "Hello." });
  await create("/v1/uploads", await recording.text(), "audio/wav");
  const { data } = await rich.openai.images.generate({ model: "local/image", prompt: "A sunrise", size: "auto" });
  const file = /[^/]+$/.exec(data?.[0]?.url ?? "")?.[0] ?? "";
  await create("/v1/keys", {});
  await rich.openai.files.create({ file: recording, purpose: "batch" });
  await insertBatches(
    running.stores,
    (["openai", "anthropic"] as const).map((kind) => ({ account: rich.id, kind, status: "completed" as const })),
  );
  const job = await create("/v1/embeddings?async=1", { model: "local/embeddings", input: "Hello." });
  await fetch(`${service.baseUrl}/v1/jobs/${job.id}?wait=60`, { headers: { authorization: `Bearer ${rich.key}` } });
  const queries: Readonly<Record<string, string>> = {
    "/v1/generation": `?id=${response.id}`,
    "/v1/invoices": "?month=2026-11",
    "/v1/statement": "?from=2026-11-01",
  };
  const ids: Readonly<Record<string, string>> = { "/v1/responses": response.id, "/media": file };
  /** A known id, or the first in the list that the route belongs to. */
  const idOf = async (path: string): Promise<string> => {
    const [list = ""] = path.split("/{id}");
    const known = ids[list];
    if (known) return known;
    const headers = { authorization: `Bearer ${rich.key}` };
    const { data: items } = (await (await fetch(service.baseUrl + list, { headers })).json()) as {
      data: { id: string }[];
    };
    return items[0]?.id ?? "";
  };
  const formats = [{}, { "anthropic-version": "2023-06-01" }, { "x-goog-api-client": "test" }];

  const problems: string[] = [];
  for (const method of ["GET", "DELETE"])
    for (const described of document.operations.filter((each) => each.method === method && !needsMore(each.path))) {
      const { path, operation } = described;
      const isModels = path.startsWith("/v1/models");
      const url =
        service.baseUrl +
        (path.includes("models")
          ? pathWith(path)
          : path.replace("{id}", path.includes("{id}") ? await idOf(path) : "")) +
        (queries[path] ?? "");
      for (const format of isModels ? formats : [{}]) {
        const headers = { ...(!isModels && { authorization: `Bearer ${rich.key}` }), ...format };
        const answer = await fetch(url, { method, headers });
        const [type = ""] = (answer.headers.get("content-type") ?? "").split(";");
        const at = `${method} ${path} ${answer.status} ${JSON.stringify(format)}`;
        const value: unknown = type === "application/json" ? await answer.json() : await answer.text();
        const faults = document.faultsOf(described, { status: 200, type, value });
        problems.push(...(answer.status === 200 ? faults : ["not 200"]).map((fault) => `${at}: ${fault}`));
        const documented = Object.entries(document.responseOf(operation, 200)?.headers ?? {});
        const names = documented.map(([name]) => name.toLowerCase());
        for (const name of answer.headers.keys())
          if (isOurs(name) && !names.includes(name)) problems.push(`${at}: ${name} is not described`);
        for (const [name, header] of documented)
          if (document.isRequired(header) && !answer.headers.has(name)) problems.push(`${at}: no ${name}`);
      }
    }
  expect(problems).toEqual([]);
});
