import { z } from "zod";
import type { Upload } from "#files";
import { formatUsd } from "#money";

const unixSeconds = (ms: number) => Math.floor(ms / 1000);

const part = z.object({
  part_number: z.int(),
  url: z.url().describe("PUT this part here, until `links_expire_at`"),
  bytes: z.int().describe("The exact size of this part"),
});

/** docs/api/inference.md, "Upload". */
export const uploadObject = z
  .object({
    id: z.string().describe("upl_..."),
    object: z.literal("upload"),
    url: z.url().nullable().describe("Signed, for 15 minutes at most; null unless active"),
    mime: z.string(),
    kind: z.enum(["image", "video", "audio"]),
    bytes: z.int(),
    created_at: z.int().describe("unix seconds"),
    expires_at: z
      .int()
      .describe("unix seconds, 24 hours after the upload; of a pending one, when it can no longer be completed"),
    status: z.enum(["pending", "active", "expired", "deleted"]),
    cost_usd: z.string().describe("Charged once, when the upload becomes active"),
    part_size: z.int().optional(),
    links_expire_at: z.int().describe("unix seconds").optional(),
    part_urls: z.array(part).describe("For a pending upload in parts").optional(),
    complete_url: z.url().describe("POST here once all parts are sent").optional(),
  })
  .meta({ id: "Upload" });

export const uploadList = z
  .object({
    object: z.literal("list"),
    data: z.array(uploadObject),
    has_more: z.boolean(),
    next: z.string().nullable().describe("Pass it as `after`"),
  })
  .meta({ id: "UploadList" });

export const deletedUpload = z.object({ id: z.string(), deleted: z.literal(true) }).meta({ id: "DeletedUpload" });

/** `POST /v1/uploads` as JSON. */
export const newUpload = z
  .object({
    // A larger file is a 413, as every file over a limit.
    bytes: z
      .int()
      .positive()
      .meta({ maximum: 200 * 1024 * 1024 }),
    mime: z.string().min(1).max(255),
  })
  .meta({ id: "NewUpload", description: "An upload in parts, of up to 200 MB" });

/** `POST /v1/uploads/{id}/complete`. Accepted because S3 clients send it, and ignored: the parts are those that storage lists. */
export const completion = z
  .object({ parts: z.array(z.object({ part_number: z.int(), etag: z.string() })).optional() })
  .meta({ id: "UploadCompletion" });

export const renderUpload = (upload: Upload, publicUrl: string): z.infer<typeof uploadObject> => ({
  id: upload.id,
  object: "upload",
  url: upload.url,
  mime: upload.mime,
  kind: upload.kind,
  bytes: upload.bytes,
  created_at: unixSeconds(upload.createdAt),
  expires_at: unixSeconds(upload.expiresAt),
  status: upload.status,
  cost_usd: formatUsd(upload.costNanoUsd),
  ...(upload.multipart && {
    part_size: upload.multipart.partSize,
    links_expire_at: unixSeconds(upload.multipart.linksExpireAt),
    part_urls: upload.multipart.parts.map(({ partNumber, url, bytes }) => ({ part_number: partNumber, url, bytes })),
    complete_url: `${publicUrl}/v1/uploads/${upload.id}/complete`,
  }),
});
