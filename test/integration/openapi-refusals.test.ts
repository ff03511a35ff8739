import { expect, test } from "vitest";
import { pathWith } from "../support/openapi.ts";
import { isOurs, openCaller } from "../support/openapi-caller.ts";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

/** Bodies that no route accepts, with their claimed type. */
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
  const { service } = running;
  const { document, rich } = await openCaller(service);
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
      // A key may be created without any field, and so may a secret, for which this service has no key.
      if (path === "/v1/keys" && status === 201) continue;
      if (path === "/v1/webhooks/default/rotate-secret" && status === 501) continue;
      if (status < 400 || status >= 500) problems.push(at);
      for (const name of response.headers.keys())
        if (isOurs(name) && !headers.includes(name)) problems.push(`${at}: ${name}`);
      const faults = document.faultsOf(described, { status, type: "application/json", value: JSON.parse(text) });
      problems.push(...faults.map((fault) => `${at}: ${fault}`));
    }
  }
  expect(problems).toEqual([]);
});

test("another method is a 405 that names those that are described, in the shape of the path", async () => {
  const { service } = running;
  const { document, rich } = await openCaller(service);
  const problems: string[] = [];
  for (const described of document.operations) {
    const { path } = described;
    const methods = document.operations.filter((each) => each.path === path).map(({ method }) => method);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((each) => !methods.includes(each))) {
      // The route is unknown, as in OpenAI's API.
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
