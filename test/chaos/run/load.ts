import { setTimeout as wait } from "node:timers/promises";
import type { PaymentRequired } from "@x402/core/types";
import { Agent, request } from "undici";
import type { PlannedCall } from "./plan.ts";
import { requestFor } from "./requests.ts";
import type { CallRecord } from "./run-log.ts";
import type { World } from "./world.ts";

/** The longest wait of a caller: the longest call of the service, plus the longest outage. */
const patienceMs = 90_000;

interface ErrorBody {
  readonly error?: {
    readonly code?: string | number;
    readonly status?: string;
    readonly type?: string;
    readonly message?: string;
  };
}

/** The service's error code, or the format's equivalent. */
const codeIn = (text: string): Pick<CallRecord, "code" | "message"> => {
  const { code, status, type, message = "" } = (JSON.parse(text) as ErrorBody).error ?? {};
  return { code: String(status ?? (code === undefined || typeof code === "number" ? type : code) ?? "none"), message };
};

/** The error inside a stream. */
function errorInStream(text: string): string | undefined {
  const event = text.split(/\r?\n\r?\n/).findLast((each) => /"error":\s*\{|event: error|"response.failed"/.test(each));
  if (event === undefined) return undefined;
  return /"code":\s*"(\w+)"/.exec(event)?.[1] ?? /"status":\s*"([A-Z_]+)"/.exec(event)?.[1] ?? "error in the stream";
}

type Ended = Pick<CallRecord, "outcome" | "begun"> & Partial<CallRecord>;

async function ask(world: World, call: PlannedCall, origin: string, agent: Agent): Promise<Ended> {
  const { path, body, type, isWhole } = requestFor(call);
  const leaving = new AbortController();
  const hanging = AbortSignal.timeout(patienceMs);
  const timer = call.leaveAfterMs === undefined ? undefined : setTimeout(() => leaving.abort(), call.leaveAfterMs);
  const signal = AbortSignal.any([leaving.signal, hanging]);
  const send = (headers: Readonly<Record<string, string>>) =>
    request(origin + path, {
      method: "POST",
      headers: { "content-type": type, ...headers },
      body,
      dispatcher: agent,
      signal,
    });
  let seen: Partial<CallRecord> = {};
  let text = "";
  try {
    let response = await send(
      call.kind === "payment"
        ? {}
        : {
            authorization: `Bearer ${world.customers[call.customer].key}`,
            ...(call.idempotencyKey !== undefined && { "idempotency-key": call.idempotencyKey }),
          },
    );
    let account: string | undefined;
    if (call.kind === "payment" && response.statusCode === 402) {
      const payment = await world.payer.pay((await response.body.json()) as PaymentRequired);
      account = payment.account;
      seen = { account };
      response = await send({ "payment-signature": payment.header });
    }
    const requestId = response.headers["x-request-id"];
    seen = {
      ...(account !== undefined && { account }),
      status: response.statusCode,
      ...(typeof requestId === "string" && { requestId }),
      replayed: response.headers["idempotent-replayed"] === "true",
    };
    for await (const part of response.body) text += String(part);
    if (response.statusCode >= 400) return { ...seen, outcome: "refused", ...codeIn(text), begun: false };
    const code = call.kind.endsWith("stream") ? errorInStream(text) : undefined;
    if (code !== undefined) return { ...seen, outcome: "refused", code, begun: true };
    if (isWhole(text)) return { ...seen, outcome: "answered", begun: true };
    return { ...seen, outcome: "none", failure: `ended with ${text.slice(-80)}`, begun: text !== "" };
  } catch (error) {
    const { code = "", name } = error as NodeJS.ErrnoException;
    const isAudio = call.kind === "speech" && text !== "";
    const outcome = leaving.signal.aborted ? "disconnected" : hanging.aborted ? "hung" : isAudio ? "refused" : "none";
    return { ...seen, outcome, failure: code || name, begun: text !== "" };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts each call at its time, however slow the others are. Resolves when the last one has ended. Audio cannot contain
 * an error, so a closed connection is one.
 */
export async function runCalls(world: World, planned: readonly PlannedCall[], startedAt: number) {
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 30_000 } });
  const records: CallRecord[] = [];
  const open: Promise<void>[] = [];
  let late = 0;
  const run = async (call: PlannedCall) => {
    const apis = world.running("api");
    const api = apis[call.instance % apis.length];
    if (!api) throw new Error("no API runs");
    const { marker, kind, behavior, idempotencyKey } = call;
    const startedMs = Date.now();
    late = Math.max(late, startedMs - startedAt - call.atMs);
    const ended = await ask(world, call, api.origin, agent);
    records.push({
      marker,
      kind,
      behavior,
      account: world.customers[call.customer].id,
      instance: api.name,
      startedMs,
      endedMs: Date.now(),
      replayed: false,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      ...ended,
    });
  };
  for (const call of planned) {
    const dueMs = startedAt + call.atMs - Date.now();
    if (dueMs > 0) await wait(dueMs);
    open.push(run(call));
  }
  await Promise.all(open);
  await agent.destroy();
  return { calls: records, lateMs: late };
}
