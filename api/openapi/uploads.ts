import { z } from "zod";
import { completion, deletedUpload, newUpload, uploadList, uploadObject } from "../routes/upload-object.ts";
import { idempotencyKey, storedUploadHeaders, uploadHeaders } from "./headers.ts";
import { binary, type Group, json, operation, pathId } from "./operation.ts";

const ofUpload = pathId("upl_...");

export const uploads: Group = {
  name: "Uploads",
  description: "Files as inputs of models, named by their id; stored and charged for 24 hours",
  operations: {
    "POST /v1/uploads": operation("createUpload", "Upload a file as a raw body, as a form, or in parts (JSON)", {
      params: { header: idempotencyKey },
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
      ok: ["The upload", uploadObject, storedUploadHeaders],
      errors: [400, 401, 402, 403, 408, 409, 411, 413, 415, 429, 500, 503],
    }),
    "GET /v1/uploads": operation("listUploads", "The account's uploads of the last 24 hours, newest first", {
      params: {
        query: z.object({
          limit: z.int().min(1).max(1_000).default(1_000).optional(),
          after: z.string().min(1).max(200).optional().describe("`next` of the page before"),
        }),
      },
      ok: ["The uploads", uploadList],
      errors: [400, 401, 500, 503],
    }),
    "GET /v1/uploads/{id}": operation("getUpload", "One upload", {
      params: ofUpload,
      ok: ["The upload", uploadObject],
      errors: [401, 404, 410, 500, 503],
    }),
    "DELETE /v1/uploads/{id}": operation("deleteUpload", "Delete an upload at once", {
      params: ofUpload,
      ok: ["It is gone", deletedUpload],
      errors: [401, 404, 410, 500, 503],
    }),
    "POST /v1/uploads/{id}/complete": operation(
      "completeUpload",
      "Complete an upload in parts: the `complete_url` of a pending one",
      {
        params: ofUpload,
        requestBody: { required: false, content: json(completion) },
        ok: ["The upload", uploadObject, uploadHeaders],
        errors: [400, 401, 403, 404, 408, 410, 413, 415, 429, 500, 503],
      },
    ),
  },
};
