import type { GenerationCall, JsonObject } from "../provider.ts";
import { fieldsIn, providerFileRefusal } from "../wire/json.ts";

export interface InputRules {
  /** Limit of the uploads that are sent inside one request, where storage cannot be reached from outside. */
  readonly inlineLimitBytes: number;
  /** Where the operator's key opens what is stored at the provider: it may be another tenant's. */
  readonly privateHosts: RegExp;
  /** The input with `n` and `size` of the images route under this provider's names. */
  rename(input: JsonObject): JsonObject;
}

const isPrivate = (text: string, privateHosts: RegExp): boolean =>
  (privateHosts.test(text) && hasAddress(text, privateHosts)) || privateHosts.test(URL.parse(text)?.hostname ?? "");

/** Anywhere in a text: two slashes of either kind, then a host before the next slash, as any URL parser may read it. */
function hasAddress(text: string, hosts: RegExp): boolean {
  let at = 0;
  return text.split(/[\s/]/).some((segment) => {
    const before = text.slice(Math.max(0, at - 2), at);
    at += segment.length + 1;
    const run = before + segment;
    const slashes = run.search(/[\\/]{2}/);
    return slashes >= 0 && hosts.test(run.slice(slashes));
  });
}

/** The input as the provider takes it, each upload by a link or as a data URL. */
export async function prepareInput({ task, input, uploads }: GenerationCall, rules: InputRules): Promise<JsonObject> {
  const { response_format: _, stream: __, partial_images: ___, ...fields } = input;
  const given = task === "images" ? rules.rename(fields) : input;
  for (const { param, value } of fieldsIn(given, task === "images" ? "" : "input"))
    if (typeof value === "string" && isPrivate(value, rules.privateHosts)) throw providerFileRefusal(param, param);
  const urls = new Map<string, string>();
  let remainingBytes = rules.inlineLimitBytes;
  for (const file of uploads.values()) {
    if (file.link !== undefined) {
      urls.set(file.id, file.link);
      continue;
    }
    const copies = countOf(given, file.id);
    const base64 = await file.base64(Math.floor(remainingBytes / copies), copies);
    urls.set(file.id, `data:${file.mime};base64,${base64}`);
    remainingBytes -= copies * file.bytes;
  }
  return withUrls(given, urls) as JsonObject;
}

function countOf(value: unknown, id: string): number {
  if (typeof value !== "object" || value === null) return value === id ? 1 : 0;
  return Object.values(value).reduce((count: number, each) => count + countOf(each, id), 0);
}

function withUrls(value: unknown, urls: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return urls.get(value) ?? value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => withUrls(each, urls));
  return Object.fromEntries(Object.entries(value).map(([field, each]) => [field, withUrls(each, urls)]));
}
