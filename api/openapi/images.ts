import { z } from "zod";
import { imageRequest } from "#formats";
import { ignoredParams } from "./headers.ts";
import { operation, unixSeconds } from "./operation.ts";
import { payable, payableHeaders } from "./payable.ts";

const imageResponse = z
  .object({
    created: unixSeconds,
    expires_at: z.int().describe("unix seconds; when the files are deleted, 24 hours after creation"),
    data: z.array(
      z.looseObject({
        url: z.url().optional(),
        b64_json: z.string().optional(),
        revised_prompt: z.string().optional(),
        expires_at: unixSeconds,
      }),
    ),
  })
  .meta({ id: "ImageResponse" });

const imageHeaders = payableHeaders.extend({ "x-ignored-params": ignoredParams });

export const images = {
  "POST /v1/images/generations": operation("createImage", "Images from a prompt, priced per image", {
    ...payable,
    body: imageRequest,
    ok: ["The answer", imageResponse, imageHeaders],
  }),
};
