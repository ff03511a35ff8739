import { z } from "zod";
import { type JsonObject, omitNullish } from "#json";
import { validate } from "./errors.ts";
import { type FormFields, ofForm } from "./form-fields.ts";
import { imageRequest, variedImageRequest } from "./images.ts";
import { isBase64 } from "./media-part.ts";
import { inlineOf } from "./media-types.ts";
import { checkShape } from "./uploads.ts";

/** OpenAI's own limit. */
export const maxImages = 16;

const address = z.string().min(1);
const namedAddress = z
  .object({ image_url: address.nullish(), file_id: address.nullish() })
  .refine(({ image_url, file_id }) => (image_url == null) !== (file_id == null), "needs `image_url` or `file_id`");
const imageRef = z
  .union([address, namedAddress])
  .describe("The id of an upload (`upl_...`) or a data URL, as a string or as OpenAI's `image_url` or `file_id`");
type ImageRef = z.infer<typeof imageRef>;

const imageRefs = z.array(imageRef).min(1).max(maxImages);

/** The JSON of `POST /v1/images/edits`: OpenAI's, except that `images` may also be called `image`, as in its form. */
export const imageEditRequest = imageRequest
  .omit({ buyback_token: true })
  .extend({
    images: imageRefs.nullish(),
    image: z.union([address, namedAddress, imageRefs]).nullish(),
    mask: imageRef.nullish().describe("Transparent where the first image is to be edited"),
  })
  .refine(({ image, images }) => (image == null) !== (images == null), {
    path: ["image"],
    message: "one of `image` and `images` is needed",
  })
  .meta({ id: "ImageEditRequest" });

/** The JSON of `POST /v1/images/variations`. */
export const imageVariationRequest = variedImageRequest
  .omit({ buyback_token: true, variation: true })
  .extend({ image: imageRef })
  .meta({ id: "ImageVariationRequest" });

/** Every form value is text. No model that accepts images has other numeric fields. */
const textFields = {
  n: z.coerce.number().int().min(1).max(4).optional(),
  output_compression: z.coerce.number().optional(),
  stream: z
    .enum(["true", "false"])
    .transform((stream) => stream === "true")
    .optional()
    .describe("Only `false`"),
};

/** The fields of the forms, except their files. */
export const imageEditForm = imageRequest.omit({ buyback_token: true }).extend(textFields);
export const imageVariationForm = variedImageRequest.omit({ buyback_token: true, variation: true }).extend(textFields);

/** An image of a request: its field in the job, and its path in the body for errors. */
export interface NamedImage {
  readonly field: string;
  readonly param: string;
}

/** The call as `POST /v1/images/generations` takes it, with its images separate. */
interface ImageCall {
  readonly call: JsonObject;
  readonly images: readonly (NamedImage & { readonly address: string })[];
}

function named(field: string, path: string, ref: ImageRef): ImageCall["images"][number] {
  if (typeof ref === "string") return { field, param: path, address: ref };
  const { image_url, file_id } = ref;
  const param = `${path}.${image_url == null ? "file_id" : "image_url"}`;
  return { field, param, address: image_url ?? file_id ?? "" };
}

const namedList = (path: string, refs: readonly ImageRef[]) =>
  refs.map((ref, index) => named("image", `${path}[${index}]`, ref));

export function imageEditCall(body: unknown): ImageCall {
  checkShape(body);
  const { images, image, mask, ...call } = validate(imageEditRequest, body);
  const edited = Array.isArray(image)
    ? namedList("image", image)
    : image == null
      ? []
      : [named("image", "image", image)];
  const masks = mask == null ? [] : [named("mask", "mask", mask)];
  return { call: omitNullish(call), images: [...edited, ...namedList("images", images ?? []), ...masks] };
}

export function imageVariationCall(body: unknown): ImageCall {
  checkShape(body);
  const { image, ...call } = validate(imageVariationRequest, body);
  return { call: { ...omitNullish(call), variation: true }, images: [named("image", "image", image)] };
}

export const imageEditFields = (fields: FormFields): JsonObject => omitNullish(validate(imageEditForm, ofForm(fields)));

export const imageVariationFields = (fields: FormFields): JsonObject => ({
  ...omitNullish(validate(imageVariationForm, ofForm(fields))),
  variation: true,
});

/** Inserts the addresses of the images into the call. A list of one remains a list. */
export function withImages(call: JsonObject, images: readonly NamedImage[], addresses: readonly string[]): JsonObject {
  const edited = addresses.filter((_, index) => images[index]?.field === "image");
  const isList = edited.length > 1 || images.some(({ field, param }) => field === "image" && param.includes("["));
  const mask = addresses[images.findIndex(({ field }) => field === "mask")];
  return { ...call, image: isList ? edited : edited[0], ...(mask !== undefined && { mask }) };
}

/** A multiple of 4, so that every piece decodes to complete bytes. */
const pieceCharacters = 64 * 1024;

/** Decodes a data URL in pieces as it is read. Returns undefined if the address is not a base64 data URL. */
export function fileInAddress(address: string) {
  const { data } = inlineOf(address) ?? {};
  if (data === undefined || !isBase64(data)) return undefined;
  return {
    bytes: Buffer.byteLength(data, "base64"),
    head: Buffer.from(data.slice(0, pieceCharacters), "base64"),
    body: (async function* () {
      for (let at = 0; at < data.length; at += pieceCharacters)
        yield Buffer.from(data.slice(at, at + pieceCharacters), "base64");
    })(),
  };
}
