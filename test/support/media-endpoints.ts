import { expect } from "vitest";
import { charges, imageModel, imagePrices, images, media, pngOf, providerImages, wavOf } from "./generation-setup.ts";
import { dataAddress } from "./media-files.ts";
import type { Client, Customer } from "./service.ts";
import { catalogWith, entryOf, nanoUsd } from "./service-setup.ts";

export const edits = "/v1/images/edits";
export const variations = "/v1/images/variations";
export const transcriptions = "/v1/audio/transcriptions";
export const translations = "/v1/audio/translations";
export const speech = "/v1/audio/speech";

/** Prices are set here, so that changes of the price list do not affect the tests. */
const elite_discount_bps = 1_500;
export const mediaCatalog = () =>
  catalogWith(
    {},
    {
      ...imagePrices,
      "local/speech": { pricing: { character: "0.000005" }, elite_discount_bps },
      "local/transcription": { pricing: { minute: "0.002" }, elite_discount_bps },
      "local/video": { pricing: { second: "0.01" }, variants: [], elite_discount_bps },
      "openai/tts-1": { pricing: { character: "0.000015" } },
      "openai/whisper-1": { pricing: { minute: "0.006" } },
    },
  );

/** Fields of a JSON body or of a form. In a form, a list is a field that is sent several times. */
export type Fields = Readonly<Record<string, unknown>>;

/** An endpoint with a request that the local model answers. */
export interface Endpoint {
  readonly path: string;
  readonly isForm?: true;
  readonly fields: Fields;
  /** The cost of the request. */
  readonly costNanoUsd: bigint;
  /** The held amount, if it is more than the cost. */
  readonly heldNanoUsd?: bigint;
  /** A change that makes it another request. */
  readonly other: Fields;
}

export const image = new Blob([pngOf(30, 20)], { type: "image/png" });
export const imageAddress = dataAddress("image/png", pngOf(30, 20));
const recording = new Blob([wavOf(3)]);

const drawing = { model: imageModel, prompt: "at night", size: "16x16" };
const cost = { image: 10_000_000n, edit: 12_000_000n, transcript: 100_000n, speech: 60_000n, video: 10_000_000n };
/** A file of that size can have 1.6 minutes at the lowest bit rate. */
const heldNanoUsd = 3_202_934n;

export const endpoints = {
  images: { path: images, fields: drawing, costNanoUsd: cost.image, other: { prompt: "by day" } },
  "image edits in JSON": {
    path: edits,
    fields: { ...drawing, image: imageAddress },
    costNanoUsd: cost.edit,
    other: { image: dataAddress("image/png", pngOf(3, 5)) },
  },
  "image edits in a form": {
    path: edits,
    isForm: true,
    fields: { ...drawing, image },
    costNanoUsd: cost.edit,
    other: { image: new Blob([pngOf(3, 5)]) },
  },
  "variations in JSON": {
    path: variations,
    fields: { model: imageModel, size: "16x16", image: imageAddress },
    costNanoUsd: cost.edit,
    other: { image: dataAddress("image/png", pngOf(3, 5)) },
  },
  "variations in a form": {
    path: variations,
    isForm: true,
    fields: { model: imageModel, size: "16x16", image },
    costNanoUsd: cost.edit,
    other: { image: new Blob([pngOf(3, 5)]) },
  },
  transcriptions: {
    path: transcriptions,
    isForm: true,
    fields: { model: "local/transcription", file: recording },
    costNanoUsd: cost.transcript,
    heldNanoUsd,
    other: { file: new Blob([wavOf(4)]) },
  },
  translations: {
    path: translations,
    isForm: true,
    fields: { model: "local/transcription", file: recording },
    costNanoUsd: cost.transcript,
    heldNanoUsd,
    other: { prompt: "Names" },
  },
  speech: {
    path: speech,
    fields: { model: "local/speech", input: "Good day 👋👋!", voice: "alto" },
    costNanoUsd: cost.speech,
    other: { voice: "bass" },
  },
  "media: speech": {
    path: media,
    fields: { model: "local/speech", input: { text: "Good day 👋👋!" } },
    costNanoUsd: cost.speech,
    other: { input: { text: "Good day" } },
  },
  "media: video": {
    path: media,
    fields: { model: "local/video", input: { prompt: "waves", duration: 1, resolution: "320x240" } },
    costNanoUsd: cost.video,
    other: { input: { prompt: "hills", duration: 1, resolution: "320x240" } },
  },
} as const satisfies Readonly<Record<string, Endpoint>>;

export const providers = { images: providerImages, transcription: "openai/whisper-1", speech: "openai/tts-1" } as const;

interface Init {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** Sends the endpoint's request with other fields; `undefined` leaves one out. */
export function send(
  { baseUrl }: Pick<Client, "baseUrl">,
  customer: Customer,
  { path, isForm, fields: own }: Pick<Endpoint, "path" | "isForm" | "fields">,
  changed: Fields = {},
  init: Init = {},
): Promise<Response> {
  const fields = { ...own, ...changed };
  if (!isForm) return customer.post(path, fields, init);
  const body = new FormData();
  for (const [name, value] of Object.entries(fields))
    for (const each of [(value ?? []) as string | Blob | readonly (string | Blob)[]].flat())
      if (typeof each === "string") body.append(name, each);
      else body.append(name, each, "file");
  const headers = { authorization: `Bearer ${customer.key}`, ...init.headers };
  return fetch(baseUrl + path, { ...init, method: "POST", headers, body });
}

/** The cost of the only call of an account that had one USD, on which all records must agree. */
export async function onlyCost(service: Client, customer: Customer, { headers }: Response, endpoint: string) {
  await service.settled();
  const { request, amount_usd } = await entryOf(service, headers.get("x-request-id"));
  expect(request).toMatchObject({ endpoint, status: "succeeded" });
  expect(headers.get("x-xm-cost-usd")).toBe(amount_usd.replace("-", ""));
  expect(await charges(customer)).toHaveLength(1);
  expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe(-nanoUsd(amount_usd));
  return -nanoUsd(amount_usd);
}
