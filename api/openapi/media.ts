import { z } from "zod";
import { mediaRequest } from "#formats";
import { requestId } from "../http/openapi/headers.ts";
import { type Group, operation, pathId, unixSeconds } from "../http/openapi/operation.ts";
import { payable, payableHeaders } from "../http/openapi/payable.ts";
import { file } from "../routes/files.ts";

const mediaResponse = z
  .object({
    id: z.string(),
    object: z.literal("media.generation"),
    created: unixSeconds,
    model: z.string(),
    expires_at: unixSeconds,
    output: z.looseObject({}).describe("What the model says beside its files, such as a transcript"),
    files: z.array(z.looseObject({ url: z.url(), content_type: z.string(), bytes: z.int(), expires_at: unixSeconds })),
  })
  .meta({ id: "MediaResponse" });

const fileConditions = z.object({
  Range: z.string().optional().describe("The part of the file, such as `bytes=0-1023`; several parts are ignored"),
  "If-Range": z.string().optional().describe("Sends the whole file if it is not the one with this `ETag`"),
  "If-None-Match": z.string().optional().describe("304 if the file has this `ETag`"),
});

const fileHeaders = z.object({
  ...requestId,
  ETag: z.string(),
  "Accept-Ranges": z.literal("bytes"),
  "Content-Disposition": z.string().describe("With a name; `attachment` for what browsers do not show"),
});

const partHeaders = fileHeaders.extend({ "Content-Range": z.string() });

export const media: Group = {
  name: "Media",
  description:
    "Video, audio and other media by one endpoint, and the files that models generate; a preview, whose shapes may change",
  operations: {
    "POST /v1/media/generations": operation("createMedia", "Video, audio and other media, priced per unit of output", {
      ...payable,
      body: mediaRequest,
      examples: {
        video: {
          summary: "A video of a second",
          value: { model: "local/video", input: { prompt: "A sunrise", duration: 1, resolution: "320x240" } },
        },
        speech: { summary: "Speech", value: { model: "local/speech", input: { text: "Hello." } } },
      },
      ok: ["The answer", mediaResponse, payableHeaders],
    }),
    "GET /media/{id}": operation("getFile", "A generated file; takes Range", {
      security: [],
      params: { ...pathId("file_..."), header: fileConditions },
      errors: [404, 410, 500, 503],
      responses: {
        "200": { description: "The file", headers: fileHeaders, content: file },
        "206": { description: "The part that was asked for", headers: partHeaders, content: file },
        "304": {
          description: "It is the one that the caller has",
          headers: fileHeaders.pick({ "x-request-id": true, ETag: true }),
        },
        "416": {
          description: "The file ends before that part",
          headers: partHeaders.pick({ "x-request-id": true, "Content-Range": true }),
        },
      },
    }),
  },
};
