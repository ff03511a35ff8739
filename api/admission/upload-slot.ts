import type { Request, Response } from "express";
import { type ServiceError, toServiceError } from "#errors";
import type { Caller, Keys, Slot } from "#keys";
import type { Uses } from "#platform/uses";
import { localsOf } from "../http/headers.ts";
import type { RouteCall } from "../http/route.ts";
import { authenticate } from "./authenticate.ts";

export interface UploadSlotDeps extends Uses<"clock" | "log"> {
  readonly keys: Keys;
  /** Throws 503 after the drain. Otherwise the drain waits until the returned function is called. */
  readonly arrive: () => () => void;
}

/** Longer than receiving or completing an upload takes. The slot expires after this time. */
const slotMs = 30 * 60_000;

/** Registers a request with the drain and then authenticates it. */
export const arriveAndAuthenticate =
  ({ arrive, keys }: UploadSlotDeps) =>
  (req: Request, res: Response): Promise<Caller> => {
    const leave = arrive();
    if (res.closed) leave();
    else res.once("close", leave);
    return authenticate(keys, req);
  };

/** Writes one log line for each upload, as for each call. */
const logWhenClosed = ({ clock, log }: UploadSlotDeps, req: Request, res: Response, { account, keyId }: Caller) =>
  res.once("close", () => {
    const { requestId, arrivedAt } = localsOf(res);
    const endpoint = req.baseUrl + req.path;
    const [status, disconnected] = [res.statusCode, !res.writableFinished];
    const totalMs = clock.now() - arrivedAt;
    log.info({ requestId, account, key: keyId, endpoint, status, disconnected, totalMs }, "upload");
  });

/** Takes a slot of the key's upload limits while `work` runs. */
export async function withUploadSlot<T>(
  deps: UploadSlotDeps,
  { who: caller, req, res }: Pick<RouteCall<Caller>, "who" | "req" | "res">,
  work: (slot: Slot) => Promise<T>,
): Promise<T> {
  logWhenClosed(deps, req, res, caller);
  const { requestId } = localsOf(res);
  const slot = await deps.keys.takeUploadSlot(caller, { requestId, ttlMs: slotMs });
  let refusedBy: ServiceError | undefined;
  try {
    return await work(slot);
  } catch (error) {
    refusedBy = toServiceError(error);
    throw error;
  } finally {
    await deps.keys.release(slot, { refusedBy });
  }
}
