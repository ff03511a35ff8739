import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { type HostileInput, mebi, openaiModel, type Send, send, type Target } from "./input.ts";

/** Node reads at most 16 KB of headers, including the address. */
const headBytes = 15_000;
const body = JSON.stringify({ model: openaiModel, messages: [{ role: "user", content: "Hi" }] });
const chat = "/v1/chat/completions";
const fill = (unit: string) => unit.repeat(Math.floor(headBytes / unit.length));

const sending =
  (path: string, more: Parameters<typeof send>[2]) =>
  (target: Target): Send =>
  async () =>
    (await send(target, path, more)).status;

/** Headers of a chat request at their maximum length. */
const headers: Readonly<Record<string, string>> = {
  "content-type": `application/json${fill(";a=b")}`,
  accept: fill("a/b;q=0.1,"),
  "accept-encoding": fill("gzip;q=0,"),
  "content-encoding": fill("gzip, "),
  "idempotency-key": fill("k"),
  cookie: fill("a=b; "),
  forwarded: fill("for=1;by=2,"),
  "x-forwarded-for": fill("1.1.1.1,"),
  "x-real-ip": fill(":"),
  traceparent: fill("00-"),
  tracestate: fill("a=b,"),
  "x-api-key": fill("xm_"),
  "anthropic-beta": fill("a,"),
  "anthropic-version": fill("2023-"),
  "payment-signature": fill("e30="),
  "x-goog-api-client": fill("a/1 "),
  referer: fill("/../"),
  "access-control-request-headers": fill("a,"),
  "transfer-encoding-of-mine": fill("\t "),
};

const boundary = fill("b");
const manyHeaders = ["authorization", "Bearer x", ...Array.from({ length: 1_500 }, (_, at) => [`a${at}`, "1"]).flat()];
const addresses: readonly (readonly [name: string, path: string])[] = [
  ["an address of escapes", `/v1/${fill("%2e%2e%2f")}`],
  ["an address of slashes", `/${fill("/")}`],
  ["an address of dots", `/v1/${fill("../")}models`],
  ["a query of 5,000 parameters", `/v1/models?${fill("a&")}`],
  ["a query of nested parameters", `/v1/models?${fill("a[b]")}=1`],
  ["a model of 15 KB in an address", `/v1beta/models/${fill("a/")}:generateContent`],
  ["an id of 15 KB", `/v1/uploads/${fill("%F0%9F%98%80")}`],
];

/** Each inflates to at most 25 MB, which is the limit. */
const inflating: readonly (readonly [name: string, encoding: string, bytes: () => Buffer])[] = [
  ["24 MB of white space, gzip", "gzip", () => gzipSync(" ".repeat(24 * mebi))],
  ["24 MB of white space, deflate", "deflate", () => deflateSync(" ".repeat(24 * mebi))],
  ["24 MB of white space, br", "br", () => brotliCompressSync(" ".repeat(24 * mebi))],
  ["400 MB of white space, gzip", "gzip", () => gzipSync(Buffer.alloc(400 * mebi, " "))],
  ["100,000 empty gzip members", "gzip", () => Buffer.concat(Array.from({ length: 100_000 }, () => gzipSync("")))],
];

export const headerInputs: readonly HostileInput[] = [
  ...Object.entries(headers).map(
    ([name, value]): HostileInput => ({
      kind: "headers",
      name: `${name} of 15 KB`,
      isShort: name === "content-type" || name === "accept",
      prepare: sending(chat, { body, headers: { [name]: value } }),
    }),
  ),
  { kind: "headers", name: "1,500 headers", prepare: sending(chat, { body, headers: manyHeaders }) },
  {
    kind: "headers",
    name: "a form's boundary of 15 KB",
    prepare: sending("/v1/uploads", {
      body: `--${boundary}`.repeat(100),
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    }),
  },
  {
    kind: "headers",
    name: "a preflight of 15 KB",
    prepare: sending(chat, { method: "OPTIONS", headers: ["access-control-request-headers", fill("a,")] }),
  },
  {
    kind: "headers",
    name: "ranges of 15 KB",
    prepare: sending("/v1/files/file_x", { method: "GET", headers: { range: `bytes=${fill("0-1,")}` } }),
  },
  ...["if-none-match", "if-modified-since"].map(
    (name): HostileInput => ({
      kind: "headers",
      name: `${name} of 15 KB`,
      prepare: sending("/v1/models", { method: "GET", headers: { [name]: fill('"a",') } }),
    }),
  ),
  ...addresses.map(([name, path]): HostileInput => ({ kind: "headers", name, prepare: sending(path, { body }) })),
  ...inflating.map(
    ([name, encoding, bytes], at): HostileInput => ({
      kind: "headers",
      name,
      isShort: at === 0,
      prepare: (target) => sending(chat, { body: bytes(), headers: { "content-encoding": encoding } })(target),
    }),
  ),
];
