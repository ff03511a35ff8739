import { type Request, type RequestHandler, type Response, Router } from "express";
import { z } from "zod";
import { type ServiceError, toServiceError } from "#errors";
import type { Upload } from "#files";
import type { Caller, Keys, Slot } from "#keys";
import { formatUsd } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import { authenticate } from "../admission/authenticate.ts";
import { createBodyReader, type JsonBody } from "../http/body.ts";
import { methodNotAllowed } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { pageQuery, parse, wholeNumber } from "../http/input.ts";
import { mediaTypeOf } from "../http/upload-body.ts";
import { type CreateDeps, receiveUpload, startUpload, type UploadCall } from "./create-upload.ts";
import { completion, renderUpload } from "./upload-object.ts";

export interface UploadDeps extends CreateDeps {
  readonly keys: Keys;
  readonly bodyBudget: ByteBudget;
  readonly publicUrl: () => string;
  /** Throws 503 after the drain. Otherwise the drain waits until the returned function is called. */
  readonly arrive: () => () => void;
}

const jsonLimitBytes = 16 * 1024;
/** Longer than receiving or completing an upload takes. After it the slot frees itself. */
const slotMs = 30 * 60_000;
/** Whoever asks for no page gets all of a day, but for the busiest accounts. */
const listQuery = pageQuery.extend({ limit: wholeNumber.pipe(z.int().min(1).max(1_000)).default(1_000) });

/** Mounted at `/v1/uploads`. */
export function uploadRoutes(deps: UploadDeps): Router {
  const { uploads } = deps.files;
  const readJson = createBodyReader({ limitBytes: jsonLimitBytes, budget: deps.bodyBudget, clock: deps.clock });
  const render = (upload: Upload) => renderUpload(upload, deps.publicUrl());

  /** One log line for each upload, as for each call. */
  const logWhenClosed = (req: Request, res: Response, { account, keyId }: Caller) =>
    res.once("close", () => {
      const { requestId, arrivedAt } = localsOf(res);
      const endpoint = req.baseUrl + req.path;
      const [status, disconnected] = [res.statusCode, !res.writableFinished];
      const totalMs = deps.clock.now() - arrivedAt;
      deps.log.info({ requestId, account, key: keyId, endpoint, status, disconnected, totalMs }, "upload");
    });

  /** Takes a slot of the key's upload limits before the body is read. */
  async function withSlot<T>(res: Response, caller: Caller, work: (slot: Slot) => Promise<T>): Promise<T> {
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

  async function withJson<T>({ req, res, caller }: UploadCall, use: (json: JsonBody) => Promise<T>): Promise<T> {
    const json = await readJson(req, res, caller);
    try {
      return await use(json);
    } finally {
      json.release();
    }
  }

  type Handle = (req: Request<{ id: string }>, res: Response, caller: Caller) => Promise<object>;
  type Write = (req: Request<{ id: string }>, res: Response, slot: Slot) => Promise<object>;
  /** Every route registers with the drain and then authenticates. */
  const handler =
    (handle: Handle): RequestHandler<{ id: string }> =>
    async (req, res) => {
      const leave = deps.arrive();
      try {
        res.json(await handle(req, res, await authenticate(deps.keys, req)));
      } finally {
        leave();
      }
    };
  const writer = (write: Write) =>
    handler(async (req, res, caller) => {
      logWhenClosed(req, res, caller);
      return withSlot(res, caller, (slot) => write(req, res, slot));
    });
  /** What it cost replaces what was held for it in the key's budget. A pending upload may still be charged. */
  async function endInBudget(slot: Slot, { status, requestId, costNanoUsd }: Upload): Promise<void> {
    if (status === "active") await deps.keys.endBudgeted(slot, requestId, costNanoUsd);
  }

  const router = Router();
  router.post(
    "/",
    writer(async (req, res, slot) => {
      const onHeld = (heldNanoUsd: bigint) => deps.keys.takeTokens(slot, 0, heldNanoUsd);
      const call = { req, res, caller: slot.caller, onHeld };
      const upload = isJson(req)
        ? await withJson(call, (json) => startUpload(deps, call, json))
        : await receiveUpload(deps, call);
      await endInBudget(slot, upload);
      if (!isJson(req)) res.set("x-xm-cost-usd", formatUsd(upload.costNanoUsd));
      return render(upload);
    }),
  );
  router.get(
    "/",
    handler(async (req, _res, { account }) => {
      const { data, hasMore } = await uploads.list(account, parse(listQuery, req.query));
      return { object: "list", data: data.map(render), has_more: hasMore, next: hasMore ? data.at(-1)?.id : null };
    }),
  );
  router.all("/", methodNotAllowed("GET", "HEAD", "POST"));

  router.post(
    "/:id/complete",
    writer(async (req, res, slot) => {
      const { caller } = slot;
      if (hasBody(req)) await withJson({ req, res, caller }, async ({ value }) => void parse(completion, value));
      const upload = await uploads.complete(caller.account, req.params.id);
      await endInBudget(slot, upload);
      res.set("x-xm-cost-usd", formatUsd(upload.costNanoUsd));
      return render(upload);
    }),
  );
  router.all("/:id/complete", methodNotAllowed("POST"));

  router.get(
    "/:id",
    handler(async (req, _res, { account }) => render(await uploads.find(account, req.params.id))),
  );
  router.delete(
    "/:id",
    handler(async (req, _res, { account }) => {
      await uploads.delete(account, req.params.id);
      return { id: req.params.id, deleted: true };
    }),
  );
  router.all("/:id", methodNotAllowed("GET", "HEAD", "DELETE"));

  return router;
}

const isJson = (req: Request<{ id: string }>) => mediaTypeOf(req) === "application/json";
const hasBody = ({ headers }: Request<{ id: string }>) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
