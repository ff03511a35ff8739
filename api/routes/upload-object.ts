import { z } from "zod";
import type { Upload } from "#files";
import { fields, tag, unixSecondsOfMs, usd } from "../http/fields.ts";

const part = fields({
  part_number: z.int(),
  url: z.url().describe("Send this part here with PUT until `links_expire_at`"),
  bytes: z.int().describe("The exact size of this part"),
});

/** An upload (docs/api/inference.md, "Upload"). */
export const uploadObject = fields({
  id: z.string().describe("upl_..."),
  object: tag("upload"),
  url: z
    .url()
    .nullable()
    .describe("Signed link that is valid for at most 15 minutes; null unless the upload is active"),
  mime: z.string(),
  kind: z.enum(["image", "video", "audio"]),
  bytes: z.int(),
  created_at: unixSecondsOfMs,
  expires_at: unixSecondsOfMs.describe(
    "unix seconds, 24 hours after the upload; for a pending upload, the time from which it can no longer be completed",
  ),
  status: z.enum(["pending", "active", "expired", "deleted"]),
  cost_usd: usd.describe("Charged once, when the upload becomes active"),
  part_size: z.int().optional(),
  links_expire_at: unixSecondsOfMs.optional(),
  part_urls: z.array(part).describe("Only for a pending upload in parts").optional(),
  complete_url: z.url().describe("Send a POST here once all parts are sent").optional(),
}).meta({ id: "Upload" });

/** The JSON body of `POST /v1/uploads`. */
export const newUpload = z
  .object({
    // A larger file is answered 413, like every file over a limit.
    bytes: z
      .int()
      .positive()
      .meta({ maximum: 200 * 1024 * 1024 }),
    mime: z.string().min(1).max(255),
  })
  .meta({ id: "NewUpload", description: "An upload in parts, of up to 200 MB" });

/**
 * The body of `POST /v1/uploads/{id}/complete`. It is accepted because S3 clients send it, and ignored: storage lists the
 * parts.
 */
export const completion = z
  .object({ parts: z.array(z.object({ part_number: z.int(), etag: z.string() })).optional() })
  .meta({ id: "UploadCompletion" });

export const shownUpload = (upload: Upload, publicUrl: string) => ({
  ...upload,
  ...(upload.multipart && {
    partSize: upload.multipart.partSize,
    linksExpireAt: upload.multipart.linksExpireAt,
    partUrls: upload.multipart.parts,
    completeUrl: `${publicUrl}/v1/uploads/${upload.id}/complete`,
  }),
});
