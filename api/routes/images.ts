import { createHash } from "node:crypto";
import { z } from "zod";
import type { Model } from "#catalog";
import { invalidValue } from "#errors";
import { detect } from "#files";
import {
  fileInAddress,
  imageEditCall,
  imageEditFields,
  imageEditForm,
  imageEditRequest,
  imageRequest,
  imagesCodec,
  imageVariationCall,
  imageVariationFields,
  imageVariationForm,
  imageVariationRequest,
  maxImages,
  type NamedImage,
  withImages,
} from "#formats";
import { type JsonObject, object } from "#json";
import { sendContinue } from "../http/body.ts";
import { withFileForm } from "../http/file-form.ts";
import { refTo } from "../http/openapi/formats/index.ts";
import { cached, ignoredParams, storedConvertedHeaders } from "../http/openapi/headers.ts";
import { binary, json } from "../http/openapi/operation.ts";
import { mediaTypeOf } from "../http/upload-body.ts";
import { bodyWithFiles, type RouteBody, type RouteBodyDeps, type RouteRequest } from "../paid-route.ts";
import { paid, payableHeaders } from "./paid-operation.ts";

const takes = ({ task, media }: Model, field: string): boolean =>
  task === "images" && Object.hasOwn(object(media?.schema["properties"]), field);

const imageResponse = refTo("ImageResponse");
const imageFile = binary.describe("Up to 50 MB; all files together up to 100 MB");
/** A blue image of 16 by 16 pixels. */
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

const edits = {
  operationId: "createImageEdit",
  summary: "Generate images from up to 16 images and a prompt, priced per image",
  requestBody: imageBody(
    imageEditForm.extend({
      image: z.union([imageFile, z.array(imageFile).max(16)]).describe("Several are sent as `image[]`"),
      mask: imageFile.optional(),
    }),
    imageEditRequest,
    { model: "local/image", prompt: "A sunrise", size: "16x16" },
  ),
};
const variations = {
  operationId: "createImageVariation",
  summary: "Create variations of an image, with models that have `variation` in their input schema",
  requestBody: imageBody(imageVariationForm.extend({ image: imageFile }), imageVariationRequest, {
    model: "local/image",
    size: "16x16",
  }),
};

const imageJob = { job: "image", codec: imagesCodec, endsAtSyncTimeout: true } as const;

/** OpenAI's routes for images. All have the job of `/v1/images/generations`. */
export const images = {
  name: "Images",
  description: "Images in OpenAI's format, with a key or, if the service accepts it, paid by x402",
  routes: [
    paid(
      { endpoint: "/v1/images/generations", ...imageJob, payable: true, cacheable: true },
      {
        operationId: "createImage",
        summary: "Generate images from a prompt, priced per image",
        body: imageRequest,
        ok: ["The images", imageResponse, payableHeaders.extend({ ...ignoredParams, ...cached })],
      },
    ),
    paid(
      {
        endpoint: "/v1/images/edits",
        ...imageJob,
        serves: (model) => takes(model, "image") || takes(model, "image_url"),
        readBody: (deps, request) =>
          readImages(deps, request, {
            ofJson: imageEditCall,
            ofForm: imageEditFields,
            files: { image: maxImages, mask: 1 },
          }),
      },
      { ...edits, ok: ["The images", imageResponse, storedConvertedHeaders] },
    ),
    paid(
      {
        endpoint: "/v1/images/variations",
        ...imageJob,
        serves: (model) => takes(model, "variation"),
        readBody: (deps, request) =>
          readImages(deps, request, { ofJson: imageVariationCall, ofForm: imageVariationFields, files: { image: 1 } }),
      },
      { ...variations, ok: ["The images", imageResponse, storedConvertedHeaders] },
    ),
  ],
};

interface Shapes {
  readonly ofJson: typeof imageEditCall;
  readonly ofForm: typeof imageEditFields;
  readonly files: Readonly<Record<string, number>>;
}

const megabyte = 1024 * 1024;
/** The limit of one file is OpenAI's. */
const limits = { fileBytes: 50 * megabyte, formBytes: 100 * megabyte };

async function readImages(deps: RouteBodyDeps, request: RouteRequest, { ofJson, ofForm, files }: Shapes) {
  const { req, res, caller } = request;
  if (mediaTypeOf(req) === "multipart/form-data") {
    sendContinue(req, res);
    const { spoolBudget, clock } = deps;
    const form = { rules: { ...limits, files }, share: spoolBudget.share(caller.account), clock };
    return withFileForm(req, form, (sent) => {
      const call = ofForm(sent.fields);
      const images = sent.files.map(({ field, param, ...file }) => ({ field, param, file }));
      const hashes = sent.files.map(({ hash }) => hash);
      return bodyOf(deps, request, call, images, { release: () => {}, identity: identityOf(call, images, hashes) });
    });
  }
  const body = await deps.readBody(req, res, caller);
  try {
    const { call, images } = ofJson(body.value);
    const inline = images.map(({ address, ...image }) => {
      if (!/^data:/i.test(address)) return { ...image, address };
      const file = fileInAddress(address);
      if (!file) throw invalidValue(image.param, `${image.param}: a data URL must have its data in base64.`);
      return { ...image, file };
    });
    // The identity is a hash, because the text would stay in memory until the call has ended.
    const identity = createHash("sha256").update(body.text).digest("base64url");
    return await bodyOf(deps, request, call, inline, { release: () => body.release(), identity });
  } catch (error) {
    body.release();
    throw error;
  }
}

const identityOf = (call: JsonObject, images: readonly NamedImage[], hashes: readonly string[]): string =>
  JSON.stringify(withImages(call, images, hashes));

interface ImageFile {
  readonly bytes: number;
  readonly head: Buffer;
  readonly body: AsyncIterable<Buffer>;
}

type GivenImage = NamedImage & ({ readonly address: string } | { readonly file: ImageFile });

async function bodyOf(
  deps: RouteBodyDeps,
  request: RouteRequest,
  call: JsonObject,
  images: readonly GivenImage[],
  rest: Pick<RouteBody, "release" | "identity">,
): Promise<RouteBody> {
  const sent = [];
  for (const image of images) {
    if (!("file" in image)) continue;
    const type = await detect(image.file.head);
    if (type?.kind !== "image") throw invalidValue(image.param, `${image.param}: is not an image file.`);
    sent.push({ ...image.file, type });
  }
  const jsonOf = (ids: readonly string[]) => {
    const unused = [...ids];
    const addresses = images.map((image) => ("file" in image ? (unused.shift() ?? "") : image.address));
    return withImages(call, images, addresses);
  };
  return bodyWithFiles(deps, request, sent, jsonOf, rest);
}
