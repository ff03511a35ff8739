import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";

/** What an input may not name, and how much of it may be bytes. */
export interface InputRules {
  /** Bytes of uploads together that go inside the request, where storage cannot be reached from outside. */
  readonly inlineLimitBytes: number;
  /** Addresses at which the provider keeps what belongs to the operator's key: they may be another tenant's. */
  readonly kept: RegExp;
  /** This provider's own fields for those of the images route. */
  renamed(input: JsonObject): JsonObject;
}

const deepest = 64;

/** The input as the provider takes it, each upload by a link or as its bytes. */
export async function inputFor({ task, input, uploads }: GenerationCall, rules: InputRules): Promise<JsonObject> {
  const { response_format: _, stream: __, partial_images: ___, ...fields } = input;
  const given = task === "images" ? rules.renamed(fields) : input;
  refuseKept(given, task === "images" ? "" : "input", rules.kept, 0);
  const addresses = new Map<string, string>();
  let leftBytes = rules.inlineLimitBytes;
  for (const file of uploads.values()) {
    if (file.link !== undefined) {
      addresses.set(file.id, file.link);
      continue;
    }
    // The same upload may be named at many places, and goes to each.
    const times = countOf(given, file.id);
    const base64 = await file.base64(Math.floor(leftBytes / times), times);
    addresses.set(file.id, `data:${file.mime};base64,${base64}`);
    leftBytes -= times * file.bytes;
  }
  return placed(given, addresses) as JsonObject;
}

function countOf(value: unknown, id: string): number {
  if (typeof value !== "object" || value === null) return value === id ? 1 : 0;
  return Object.values(value).reduce((count: number, each) => count + countOf(each, id), 0);
}

function refuseKept(value: unknown, param: string, kept: RegExp, depth: number): void {
  if (typeof value === "string" && [value, `//${URL.parse(value)?.hostname}`].some((each) => kept.test(each)))
    throw new UpstreamFailure("refused", `${param}: the provider's own store cannot be used; upload the file.`, {
      param,
    });
  if (typeof value !== "object" || value === null) return;
  if (depth === deepest) throw new UpstreamFailure("refused", `${param}: is nested too deep.`, { param });
  for (const [field, each] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${param}[${field}]` : param ? `${param}.${field}` : field;
    refuseKept(each, at, kept, depth + 1);
  }
}

function placed(value: unknown, addresses: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return addresses.get(value) ?? value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => placed(each, addresses));
  return Object.fromEntries(Object.entries(value).map(([field, each]) => [field, placed(each, addresses)]));
}
