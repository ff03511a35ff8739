import type { Request, Response } from "express";
import type { ServiceError } from "#errors";
import type { ClaimRequest } from "#idempotency";
import type { Caller, Keys, Slot } from "#keys";
import { type BodyReader, bodyTimeoutMs, type JsonBody } from "./http/body.ts";
import { type Claimed, claimKey, type IdempotencyDeps, releaseKey } from "./idempotency.ts";
import type { OpenCalls } from "./open-calls/index.ts";

export interface ReservationDeps extends IdempotencyDeps {
  readonly keys: Keys;
  readonly openCalls: OpenCalls;
  readonly readBody: BodyReader;
  readonly callTimeoutMs: number;
}

/** A slot expires this long after the latest possible end of its call. */
const slotMarginMs = 10_000;

/** What a request takes on its way to `submit`, and how all of it is released. */
export function createReservation(deps: ReservationDeps, requestId: string) {
  let depart = () => {};
  let slot: Slot | undefined;
  let body: JsonBody | undefined;
  let claimId: string | undefined;
  return {
    arrive(): void {
      depart = deps.openCalls.arrive();
    },
    async takeSlot(caller: Caller): Promise<Slot> {
      slot = await deps.keys.takeSlot(caller, { requestId, ttlMs: bodyTimeoutMs + deps.callTimeoutMs + slotMarginMs });
      return slot;
    },
    async readBody(req: Request, res: Response): Promise<JsonBody> {
      body = await deps.readBody(req, res, slot?.caller ?? "anonymous");
      return body;
    },
    async claimKey(request: ClaimRequest, waiting: { answerBy: number; res: Response }): Promise<Claimed> {
      const claimed = await claimKey(deps, request, waiting);
      if (claimed.kind === "new") claimId = claimed.id;
      return claimed;
    },
    /** From here on the slot and the claim are released by what answers the call. */
    handOver(): void {
      slot = undefined;
      claimId = undefined;
    },
    /** For a request that is refused. */
    async release(refusedBy: ServiceError): Promise<void> {
      if (claimId !== undefined) await releaseKey(deps, claimId, requestId);
      if (slot) await deps.keys.release(slot, { refusedBy });
    },
    /** For every request, once it is submitted, answered or refused. */
    end(): void {
      body?.release();
      depart();
    },
  };
}

export type Reservation = ReturnType<typeof createReservation>;
