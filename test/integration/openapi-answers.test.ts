import { expect, test } from "vitest";
import { pathWith } from "../support/openapi.ts";
import { examplesOf, openCaller, valuesOf } from "../support/openapi-caller.ts";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

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
  const { document, rich, post, isForm } = await openCaller(running.service);
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
