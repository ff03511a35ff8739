import { invalidValue, ServiceError } from "#errors";
import { isSet, type JsonObject, object, text, writeJson } from "#formats";
import type { StoredResponses } from "#stored-responses";
import type { JsonBody } from "./http/body.ts";

export interface ResolveDeps {
  readonly responses: StoredResponses;
  readonly bodyLimitBytes: number;
}

/** A request whose body was replaced. */
interface Resolved {
  readonly previousResponseId?: string;
  /** Parses the body. Errors name the field as the caller sent it. */
  parse<T>(parse: () => T): T;
}

const maxReferences = 1_000;
const previousField = "previous_response_id";
const unknown = (param: string) =>
  invalidValue(
    param,
    `${param}: nothing is stored under this id for the account. Answers are stored for 24 hours unless store is false; send the content itself.`,
  );

/**
 * Replaces what a request of the Responses format says by reference, in the body itself: `previous_response_id` by that
 * answer's input and output in front of the new input, and each `item_reference` by its item. A body without references is
 * not touched, and nothing is read for it: undefined.
 */
export async function resolveStored(
  { responses, bodyLimitBytes }: ResolveDeps,
  account: string,
  body: JsonBody,
): Promise<Resolved | undefined> {
  const { [previousField]: previous, input } = object(body.value);
  const ids = referencesIn(input);
  if (!isSet(previous) && ids.length === 0) return undefined;
  if (isSet(previous) && typeof previous !== "string")
    throw invalidValue(previousField, `${previousField} must be a string.`);

  const reserve = (bytes: number) => body.reserve(bytes);
  const before = isSet(previous) ? await historyOf(responses, account, text(previous), reserve) : [];
  const items =
    ids.length > 0 ? await responses.findItems(account, new Set(ids.map(({ id }) => id)), reserve) : undefined;
  const missing = ids.find(({ id }) => !items?.has(id));
  if (missing) throw unknown(`input[${missing.index}].id`);

  // Bounded before it is built: a thousand references may name one large item.
  const writeParts = (parts: readonly unknown[]) => parts.map((part) => writeJson(part, "input"));
  const sizes = new Map([...(items ?? [])].map(([id, item]) => [id, Buffer.byteLength(writeJson(item, "input"))]));
  const referred = ids.reduce((sum, { id }) => sum + (sizes.get(id) ?? 0), 0);
  const history = writeParts(before).reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  if (body.bytes + referred + history > bodyLimitBytes) {
    const param = before.length > 0 ? previousField : "input";
    throw invalidValue(param, `${param}: the input with what it refers to is over ${bodyLimitBytes} bytes.`);
  }

  const current = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const resolved = Array.isArray(current)
    ? [...before, ...current.map((item: unknown) => items?.get(text(object(item)["id"])) ?? item)]
    : current;
  const { [previousField]: _, ...request } = object(body.value);
  const value = { ...request, input: resolved };
  body.replace(writeJson(value, "input"), value);
  return {
    ...(isSet(previous) && { previousResponseId: text(previous) }),
    parse: (parse) => {
      try {
        return parse();
      } catch (error) {
        throw error instanceof ServiceError ? asSent(error, before.length) : error;
      }
    },
  };
}

async function historyOf(
  responses: ResolveDeps["responses"],
  account: string,
  id: string,
  reserve: (bytes: number) => void,
): Promise<readonly unknown[]> {
  const found = await responses.find(account, id, reserve);
  if (!found) throw unknown(previousField);
  const { output } = found.response;
  return [...found.input, ...(Array.isArray(output) ? (output as unknown[]) : [])];
}

/** A reference may leave out its type. */
const isReference = ({ type, role, id }: JsonObject): boolean =>
  type === "item_reference" || (!isSet(type) && !isSet(role) && isSet(id));

function referencesIn(input: unknown): readonly { readonly id: string; readonly index: number }[] {
  if (!Array.isArray(input)) return [];
  const found: { id: string; index: number }[] = [];
  for (const [index, item] of input.entries()) {
    if (!isReference(object(item))) continue;
    if (found.length === maxReferences)
      throw invalidValue("input", `input: has more than ${maxReferences} references to items.`);
    found.push({ id: text(object(item)["id"]), index });
  }
  return found;
}

/** The same error about the caller's own input, which stands behind the history. */
function asSent(error: ServiceError, historyItems: number): ServiceError {
  const { param } = error;
  const index = Number(/^input\[(\d+)\]/.exec(param ?? "")?.[1] ?? Number.NaN);
  if (param === undefined || historyItems === 0 || Number.isNaN(index)) return error;
  const sent = index < historyItems ? previousField : param.replace(/\d+/, String(index - historyItems));
  return invalidValue(sent, error.message.replaceAll(param, sent));
}
