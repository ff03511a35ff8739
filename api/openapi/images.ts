import { z } from "zod";
import { imageEditForm, imageEditRequest, imageRequest, imageVariationForm, imageVariationRequest } from "#formats";
import { ignoredParams, storedConvertedHeaders } from "../http/openapi/headers.ts";
import { binary, type Group, json, operation, storing, unixSeconds } from "../http/openapi/operation.ts";
import { payable, payableHeaders } from "../http/openapi/payable.ts";

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
    usage: z
      .looseObject({})
      .optional()
      .describe("The tokens that the provider counted, if it did; the cost is by image"),
  })
  .meta({ id: "ImageResponse" });

const imageHeaders = payableHeaders.extend(ignoredParams);

const imageFile = binary.describe("Up to 50 MB; 100 MB of all files together");
/** 16 by 16, blue. */
const blue =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mNwaDhAEmIY1TCqYfhqAACldYAQpric7gAAAABJRU5ErkJggg==";

/** The files and fields as a form, or links, uploads and data URLs in JSON. */
const imageBody = (form: z.ZodType, body: z.ZodType, value: object) => ({
  required: true,
  content: {
    ...json(body, { examples: { json: { summary: "An image in base64", value: { ...value, image: blue } } } }),
    "multipart/form-data": { schema: form },
  },
});

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
    "POST /v1/images/edits": operation(
      "createImageEdit",
      "Images from up to 16 images and a prompt, priced per image",
      {
        ...storing,
        requestBody: imageBody(
          imageEditForm.extend({
            image: z.union([imageFile, z.array(imageFile).max(16)]).describe("Several are sent as `image[]`"),
            mask: imageFile.optional(),
          }),
          imageEditRequest,
          { model: "local/image", prompt: "A sunrise", size: "16x16" },
        ),
        ok: ["The answer", imageResponse, storedConvertedHeaders],
      },
    ),
    "POST /v1/images/variations": operation(
      "createImageVariation",
      "Variations of an image, of the models that have `variation` in their input schema",
      {
        ...storing,
        requestBody: imageBody(imageVariationForm.extend({ image: imageFile }), imageVariationRequest, {
          model: "local/image",
          size: "16x16",
        }),
        ok: ["The answer", imageResponse, storedConvertedHeaders],
      },
    ),
  },
};
