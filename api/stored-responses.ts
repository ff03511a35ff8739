import { setImmediate as endOfTurn } from "node:timers/promises";
import type { DetachedCalls } from "#detached-calls";
import { invalidValue, ServiceError } from "#errors";
import { requestIdOfResponse } from "#formats";
import { isSet, type JsonObject, object, text, writeJson } from "#json";
import type { StoredResponses } from "#stored-responses";
import type { JsonBody } from "./http/body.ts";

export interface ResolveDeps {
  readonly responses: StoredResponses;
  readonly detachedCalls: DetachedCalls;
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
/** Stands in for an item that has not been read yet. */
const placeholder = { role: "user", content: "" };
const unknown = (param: string) =>
  invalidValue(
    param,
    `${param}: nothing is stored under this id for the account. Responses are stored for 24 hours unless store is false; send the content itself.`,
  );

/**
 * Replaces the references in the body of a Responses request: `previous_response_id` by that response's input and output,
 * placed before the new input, and each `item_reference` by its item. If the body has no references, nothing is read or
 * changed, and the result is undefined. `check` throws for errors in the rest of the request, before anything is read.
 */
export async function resolveStored(
  { responses, detachedCalls, bodyLimitBytes }: ResolveDeps,
  account: string,
  body: JsonBody,
  check: (value: object) => void,
): Promise<Resolved | undefined> {
  const { [previousField]: previous, input } = object(body.value);
  const ids = referencesIn(input);
  if (!isSet(previous) && ids.length === 0) return undefined;
  if (isSet(previous) && typeof previous !== "string")
    throw invalidValue(previousField, `${previousField} must be a string.`);
  const { [previousField]: _, ...request } = object(body.value);
  // The placeholder for the history comes last, so that errors keep the indexes that the caller sent. It lets an empty input
  // pass, because a response may be continued without new input.
  const rest = isSet(previous) ? [placeholder] : [];
  const sent = Array.isArray(input)
    ? [...input.map((item: unknown) => (isReference(object(item)) ? placeholder : item)), ...rest]
    : input;
  check({ ...request, input: sent });

  const reserve = (bytes: number) => body.reserve(bytes);
  const before = isSet(previous) ? await historyOf({ responses, detachedCalls }, account, text(previous), reserve) : [];
  const items =
    ids.length > 0 ? await responses.findItems(account, new Set(ids.map(({ id }) => id)), reserve) : undefined;
  const missing = ids.find(({ id }) => !items?.has(id));
  if (missing) throw unknown(`input[${missing.index}].id`);

  // Check the size before building the body: a thousand references may name one large item. Each item is serialized once,
  // over several turns of the event loop: serializing 25 MB takes three times as long as parsing it.
  const write = (item: unknown) => writeJson(item, "input");
  const history = before.map(write);
  const itemTexts = new Map([...(items ?? [])].map(([id, item]) => [id, write(item)]));
  const sizes = new Map([...itemTexts].map(([id, item]) => [id, Buffer.byteLength(item)]));
  const referred = [...history.map((item) => Buffer.byteLength(item)), ...ids.map(({ id }) => sizes.get(id) ?? 0)];
  if (referred.reduce((sum, bytes) => sum + bytes, body.bytes) > bodyLimitBytes) {
    const param = before.length > 0 ? previousField : "input";
    throw invalidValue(param, `${param}: the input and what it refers to are over ${bodyLimitBytes} bytes.`);
  }
  await endOfTurn();

  const current: readonly unknown[] = Array.isArray(input) ? input : [{ role: "user", content: input }];
  const idOf = (item: unknown) => text(object(item)["id"]);
  const written = current.map((item) => itemTexts.get(idOf(item)) ?? write(item));
  await endOfTurn();
  const { input: _input, ...fields } = request;
  const inputText = `[${[...history, ...written].join(",")}]`;
  body.replace(`${JSON.stringify(fields).slice(0, -1)},"input":${inputText}}`, {
    ...fields,
    input: [...before, ...current.map((item) => items?.get(idOf(item)) ?? item)],
  });
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
  { responses, detachedCalls }: Pick<ResolveDeps, "responses" | "detachedCalls">,
  account: string,
  id: string,
  reserve: (bytes: number) => void,
): Promise<readonly unknown[]> {
  const found = await responses.find(account, id, reserve);
  if (!found) throw unknown(previousField);
  // A response in the background is stored before its call has ended, and its id is known from the start.
  const requestId = found.response["background"] === true ? requestIdOfResponse(id) : undefined;
  const job = requestId === undefined ? undefined : await detachedCalls.find(account, requestId);
  if (job && job.status !== "completed") throw unknown(previousField);
  const { output } = found.response;
  return [...found.input, ...(Array.isArray(output) ? (output as unknown[]) : [])];
}

/** A reference may omit its type. */
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

/** Makes an error name the field that the caller sent. In the resolved input, the caller's items come after the history. */
function asSent(error: ServiceError, historyItems: number): ServiceError {
  const { param } = error;
  const index = Number(/^input\[(\d+)\]/.exec(param ?? "")?.[1] ?? Number.NaN);
  if (param === undefined || historyItems === 0 || Number.isNaN(index)) return error;
  const sent = index < historyItems ? previousField : param.replace(/\d+/, String(index - historyItems));
  return invalidValue(sent, error.message.replaceAll(param, sent));
}
