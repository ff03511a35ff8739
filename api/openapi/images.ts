import { z } from "zod";
import { imageRequest } from "#formats";
import { ignoredParams } from "./headers.ts";
import { type Group, operation, unixSeconds } from "./operation.ts";
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

const imageHeaders = payableHeaders.extend(ignoredParams);

export const images: Group = {
  name: "Images",
  description: "Images in OpenAI's format; with a key, or paid by x402 where the service takes that",
  operations: {
    "POST /v1/images/generations": operation("createImage", "Images from a prompt, priced per image", {
      ...payable,
      body: imageRequest,
      examples: {
        url: { summary: "An image", value: { model: "local/image", prompt: "A sunrise", size: "64x64" } },
        base64: {
          summary: "Two images in base64",
          value: { model: "local/image", prompt: "A sunrise", size: "16x16", n: 2, response_format: "b64_json" },
        },
      },
      ok: ["The answer", imageResponse, imageHeaders],
    }),
  },
};
