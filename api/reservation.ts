import type { Request, Response } from "express";
import { ServiceError } from "#errors";
import { type ParsedCall, parseRouted } from "#formats";
import type { Claim, ClaimRequest } from "#idempotency";
import { isTextPool, jobCatalog } from "#jobs";
import type { Caller, Slot } from "#keys";
import type { Background } from "#platform/concurrency/background";
import type { Tracing } from "#platform/observability/tracing";
import type { Refusals } from "#refusals";
import { type AdmissionDeps, type CallWithFiles, checkBeforeFiles } from "./admission/admit.ts";
import { beginCallTrace, type CallTrace } from "./call-trace.ts";
import { bodyTimeoutMs, type JsonBody } from "./http/body.ts";
import { formTimeoutMs } from "./http/file-form.ts";
import { localsOf } from "./http/headers.ts";
import { claimKey, type IdempotencyDeps, isSettled, isSettledOrJob, releaseKey } from "./idempotency.ts";
import type { EndedCall, OpenCalls, Recording } from "./open-calls/index.ts";
import type { PaidRoute, RouteBody, RouteBodyDeps } from "./paid-route.ts";

export interface ReservationDeps extends AdmissionDeps, IdempotencyDeps, RouteBodyDeps {
  readonly openCalls: OpenCalls;
  readonly refusals: Pick<Refusals, "note">;
  readonly tracing: Tracing | undefined;
  readonly observeCall: (call: EndedCall) => void;
  readonly background: Background;
  readonly callTimeoutMs: number;
}

export type Reservation = ReturnType<typeof createReservation>;

/** A slot expires this long after the latest possible end of its call. */
const slotMarginMs = 10_000;

/** Holds what a request acquires on its way to `submit`, and releases all of it. */
export function createReservation(deps: ReservationDeps, route: PaidRoute, req: Request, res: Response) {
  const { requestId } = localsOf(res);
  const { endpoint } = route;
  let depart = () => {};
  let slot: Slot | undefined;
  let body: RouteBody | undefined;
  let isSubmitted = false;
  let claimId: string | undefined;
  let trace: CallTrace | undefined;
  let keyOwner: Caller | undefined;
  let recording: Recording | undefined;
  return {
    arrive(): void {
      depart = deps.openCalls.arrive();
    },
    identified(caller: Caller): void {
      keyOwner = caller;
    },
    /** Takes `tokens` as well, if they are known and the key has as many. */
    async takeSlot(caller: Caller, tokens = 0): Promise<Slot> {
      const bodyMs = route.readBody ? formTimeoutMs : bodyTimeoutMs;
      const ttlMs = bodyMs + deps.callTimeoutMs + slotMarginMs;
      slot = await deps.keys.takeSlot(caller, { requestId, ttlMs, tokens });
      const { tracing } = deps;
      trace = tracing && beginCallTrace(tracing, { req, res, endpoint, account: caller.account });
      trace?.passed("slot");
      if (body) trace?.passed("body");
      return slot;
    },
    trace: () => trace,
    traceIds: () => trace?.span.ids,
    async readBody(caller: Caller | undefined): Promise<RouteBody & Partial<JsonBody>> {
      const { readBody } = route;
      body =
        readBody && caller
          ? await readBody(deps, {
              req,
              res,
              caller,
              refusalOf: (draft, files) => refusalOf(deps, { route, caller, body: draft, files }),
            })
          : await deps.readBody(req, res, caller ?? "anonymous", route.jsonLimits);
      trace?.passed("body");
      return body;
    },
    async claimKey(request: ClaimRequest, waiting: Parameters<typeof claimKey>[2], isAsync: boolean): Promise<Claim> {
      const claimed = await claimKey(deps, request, waiting, isAsync ? isSettledOrJob : isSettled);
      if (claimed.kind === "new") claimId = claimed.id;
      trace?.passed("idempotency");
      return claimed;
    },
    records(started: Recording): void {
      recording = started;
    },
    /** The code that answers the call releases the slot and the claim from here on. */
    handOver(): void {
      slot = undefined;
      claimId = undefined;
    },
    /** The caller has its answer, or gets it now. The slot stays taken until it has all of it, as with any other answer. */
    async answered(): Promise<void> {
      if (claimId !== undefined) await releaseKey(deps, claimId, requestId);
      const taken = slot;
      this.handOver();
      if (!taken) return;
      if (res.closed) await deps.keys.release(taken);
      else
        res.once("close", () =>
          deps.background.run("the slot of a key could not be released", deps.keys.release(taken), { requestId }),
        );
    },
    /** `OpenCalls` deletes the files that the job reads from here on. */
    submitted(): void {
      isSubmitted = true;
    },
    isSubmitted: () => isSubmitted,
    /** Records a refusal. `OpenCalls` records a submitted call when it ends. */
    refusedBy(error: ServiceError): void {
      if (isSubmitted) return;
      const { status, code } = error;
      trace?.end(status, code);
      deps.observeCall({ endpoint, status, code });
      if (keyOwner) deps.refusals.note({ requestId, account: keyOwner.account, key: keyOwner.keyId, endpoint }, error);
    },
    /** Releases the claim and the slot of a refused request. */
    async release(refusedBy: ServiceError): Promise<void> {
      if (claimId !== undefined) await releaseKey(deps, claimId, requestId);
      if (slot) await deps.keys.release(slot, { refusedBy, costNanoUsd: 0n });
    },
    /** Called for every request once it has been submitted, answered or refused. */
    end(): void {
      if (!isSubmitted) recording?.end();
      body?.release();
      if (body?.cleanUp && !isSubmitted)
        deps.background.run("the file of a refused call could not be deleted", body.cleanUp(), { requestId });
      // The request got a stored answer. After a refusal the trace has already ended.
      if (!isSubmitted) trace?.end(res.statusCode);
      depart();
    },
  };
}

export const parseBody = (
  { job, codec }: PaidRoute,
  { value, bytes }: Pick<RouteBody, "value" | "bytes">,
): ParsedCall => parseRouted(codec, value, bytes, isTextPool(jobCatalog[job].pool));

async function refusalOf(
  deps: ReservationDeps,
  { route, body, ...rest }: { route: PaidRoute; body: RouteBody } & Omit<CallWithFiles, "call" | "route">,
): Promise<ServiceError | undefined> {
  try {
    await checkBeforeFiles(deps, { ...rest, route, call: parseBody(route, body) });
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}
