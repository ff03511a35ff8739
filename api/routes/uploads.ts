import type { Request, Router } from "express";
import { z } from "zod";
import type { Upload } from "#files";
import type { Caller, Slot } from "#keys";
import { formatUsd } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import { arriveAndAuthenticate, type UploadSlotDeps, withUploadSlot } from "../admission/upload-slot.ts";
import { createBodyReader, type JsonBody } from "../http/body.ts";
import { parse, wholeNumber } from "../http/input.ts";
import { groupOf } from "../http/openapi/describe.ts";
import { costHeaders, idempotencyKey, storedUploadHeaders } from "../http/openapi/headers.ts";
import { binary, json } from "../http/openapi/operation.ts";
import { listOf, pageQuery } from "../http/page.ts";
import { type RouteCall, routeOf, routerOf } from "../http/route.ts";
import { mediaTypeOf } from "../http/upload-body.ts";
import { type CreateDeps, receiveUpload, startUpload, type UploadCall } from "./create-upload.ts";
import { completion, newUpload, shownUpload, uploadObject } from "./upload-object.ts";

interface UploadDeps extends CreateDeps, UploadSlotDeps {
  readonly bodyBudget: ByteBudget;
  readonly publicUrl: () => string;
}

const jsonLimitBytes = 16 * 1024;
/** The default page holds all uploads of a day, except for the busiest accounts. */
const maxListed = 1_000;

/** Takes a slot of the key's upload limits before the body is read. */
const withSlot = (
  deps: UploadDeps,
  call: Pick<RouteCall<Caller>, "who" | "req" | "res">,
  { showsCost }: { readonly showsCost: boolean },
  work: (slot: Slot) => Promise<Upload>,
) =>
  withUploadSlot(deps, call, async (slot) => {
    const upload = await work(slot);
    // The cost replaces the hold in the key's budget. A pending upload may still be charged.
    if (upload.status === "active") await deps.keys.endBudgeted(slot, upload.requestId, upload.costNanoUsd);
    if (showsCost) call.res.set("x-xm-cost-usd", formatUsd(upload.costNanoUsd));
    return shownUpload(upload, deps.publicUrl());
  });

async function withJson<T>(
  { bodyBudget: budget, clock }: UploadDeps,
  { req, res, caller }: UploadCall,
  use: (json: JsonBody) => Promise<T>,
): Promise<T> {
  const body = await createBodyReader({ limitBytes: jsonLimitBytes, budget, clock })(req, res, caller);
  try {
    return await use(body);
  } finally {
    body.release();
  }
}

const isJson = (req: Request) => mediaTypeOf(req) === "application/json";
const hasBody = ({ headers }: Request) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

const route = routeOf<UploadDeps, Caller>();
const params = { id: z.string().meta({ example: "upl_..." }) };

const uploads = {
  name: "Uploads",
  description: "Files as input of models, referenced by their id; stored and charged for 24 hours",
  routes: [
    route({
      method: "post",
      path: "/v1/uploads",
      operationId: "createUpload",
      summary: "Upload a file as a raw body, as a form, or in parts (JSON)",
      headers: idempotencyKey,
      requestBody: {
        required: true,
        content: {
          "application/octet-stream": { schema: binary.min(1) },
          "multipart/form-data": { schema: z.object({ file: binary }) },
          ...json(newUpload, {
            examples: { parts: { summary: "An upload in parts", value: { bytes: 1024, mime: "image/png" } } },
          }),
        },
      },
      answers: { 200: "The upload" },
      answer: uploadObject,
      answerHeaders: storedUploadHeaders,
      errors: [402, 403, 409, 411, 429],
      handle: (deps, { who, req, res }) =>
        withSlot(deps, { who, req, res }, { showsCost: !isJson(req) }, async (slot) => {
          const onHeld = (heldNanoUsd: bigint) => deps.keys.takeTokens(slot, 0, heldNanoUsd);
          const call = { req, res, caller: slot.caller, onHeld };
          if (!isJson(req)) return receiveUpload(deps, call);
          return withJson(deps, call, (body) => startUpload(deps, call, body));
        }),
    }),
    route({
      method: "get",
      path: "/v1/uploads",
      operationId: "listUploads",
      summary: "The account's uploads of the last 24 hours, newest first",
      query: { limit: wholeNumber(z.int().min(1).max(maxListed).default(maxListed)), after: pageQuery.after },
      answers: { 200: "The uploads" },
      answer: listOf(uploadObject).meta({ id: "UploadList" }),
      async handle({ files, publicUrl }, { who: { account }, query }) {
        const { data, hasMore } = await files.uploads.list(account, query);
        const url = publicUrl();
        return { data: data.map((each) => shownUpload(each, url)), hasMore, next: hasMore ? data.at(-1)?.id : null };
      },
    }),
    route({
      method: "get",
      path: "/v1/uploads/{id}",
      operationId: "getUpload",
      summary: "One upload",
      params,
      answers: { 200: "The upload" },
      answer: uploadObject,
      errors: [410],
      async handle({ files, publicUrl }, { who: { account }, params: { id } }) {
        return shownUpload(await files.uploads.find(account, id), publicUrl());
      },
    }),
    route({
      method: "delete",
      path: "/v1/uploads/{id}",
      operationId: "deleteUpload",
      summary: "Delete an upload immediately",
      params,
      answers: { 200: "The upload was deleted" },
      answer: z.object({ id: z.string(), deleted: z.literal(true) }).meta({ id: "DeletedUpload" }),
      errors: [410],
      async handle({ files }, { who: { account }, params: { id } }) {
        await files.uploads.delete(account, id);
        return { id, deleted: true as const };
      },
    }),
    route({
      method: "post",
      path: "/v1/uploads/{id}/complete",
      operationId: "completeUpload",
      summary: "Complete an upload in parts; this is the `complete_url` of a pending upload",
      params,
      requestBody: { required: false, content: json(completion) },
      answers: { 200: "The upload" },
      answer: uploadObject,
      answerHeaders: costHeaders,
      errors: [403, 410, 429],
      handle: (deps, { who, params: { id }, req, res }) =>
        withSlot(deps, { who, req, res }, { showsCost: true }, async ({ caller }) => {
          if (hasBody(req))
            await withJson(deps, { req, res, caller }, async ({ value }) => void parse(completion, value));
          return deps.files.uploads.complete(caller.account, id);
        }),
    }),
  ],
};

export const uploadGroup = groupOf(uploads, { errors: [401, 500, 503], isRecorded: true });

/** Every route registers with the drain and then authenticates. */
export const uploadRoutes = (deps: UploadDeps): Router =>
  routerOf(uploads.routes, deps, {
    ...deps,
    payerOf: (caller) => caller,
    authorize: arriveAndAuthenticate(deps),
  });
