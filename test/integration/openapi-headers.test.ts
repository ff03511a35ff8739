import { expect, test } from "vitest";
import { type Body, examplesOf, isOurs, openCaller, type Sent, valuesOf } from "../support/openapi-caller.ts";
import { providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

/** Fields of a call that the service may ignore as hints. */
function hintsOf(path: string, body: Body): Body {
  if (path.includes("completions")) return { model: providerModel, metadata: { team: "a" } };
  if (path.endsWith(":batchEmbedContents"))
    return { requests: (body["requests"] as Body[]).map((each) => ({ ...each, taskType: "RETRIEVAL_QUERY" })) };
  if (path.endsWith(":embedContent")) return { taskType: "RETRIEVAL_QUERY" };
  if (path.startsWith("/v1beta"))
    return { safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }] };
  if (path.startsWith("/v1/images/")) return { style: "vivid" };
  return { metadata: { user_id: "a" }, safety_identifier: "a" };
}

/** The model of an example, which is part of Gemini's paths. */
const modelOf = (path: string, { model }: Body): unknown =>
  model ?? (/embedContent/i.test(path) ? "local/embeddings" : "local/chat");

/** Headers that need other circumstances. */
const testedElsewhere = [
  "504 x-should-retry",
  "200 x-xm-upstream-key",
  ...["", "-age", "-ttl", "-source", "-coalesced"].map((each) => `200 x-xm-cache${each}`),
];

test("each answer of a call has exactly the headers that are described", async () => {
  const { service } = running;
  const { document, rich, recording, post } = await openCaller(service);
  const unfunded = await service.account("0");
  const frozen = await service.account("1");
  await service.admin("PATCH", `/accounts/${frozen.id}`, { frozen: true });
  const otherModels = await service.admin<{ key: string }>("POST", `/accounts/${rich.id}/keys`, { models: ["none/*"] });
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
      { body: { ...body, models: [modelOf(path, body)] } },
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
      { from: otherModels, body },
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
      const missing = headers.filter(
        (name) => isOurs(name) && !names.has(name) && !testedElsewhere.includes(`${status} ${name}`),
      );
      for (const name of names)
        if (!headers.includes(name)) problems.add(`${path} ${status}: ${name} is not described`);
      // A success may need what only some calls provide, such as an existing upload; its headers are the same for all.
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
});
