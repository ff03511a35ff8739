import type { Generated, GenerationCall } from "../provider.ts";
import { failureInside } from "../wire/failures.ts";
import { isObject, pick } from "../wire/json.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { decompressed, storeAnswer, storeEach, throwFailure } from "../wire/read-answer.ts";
import { formOf } from "./form.ts";
import { readImages } from "./read-images.ts";

const megabyte = 1024 * 1024;
const imageLimitBytes = 64 * megabyte;
/** The provider's documented limits for edits. */
const inputLimitBytes = (field: string) => (field === "mask" ? 4 : 50) * megabyte;

const outputFields = ["created", "background", "output_format", "quality", "size", "usage"];

/**
 * Images arrive as base64 or as URLs, whichever is the model's default: `response_format` is never sent, because newer
 * models refuse it and other providers have other values for it.
 */
export async function images(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { stream: _, partial_images: __, response_format: ___, ...fields } = call.input;
  const json = { ...fields, model: call.model };
  const request =
    call.uploads.size === 0
      ? { path: "/images/generations", json }
      : { path: "/images/edits", form: await formOf(json, call.uploads, inputLimitBytes) };
  const response = await client.send(request, call);
  const { answer, images } = await readImages(decompressed(response), call.hold).catch((error: unknown) =>
    throwFailure(error, call.signal),
  );
  if (answer.error != null) throw failureInside(answer, client.clock);
  const items = Array.isArray(answer.data) ? answer.data.filter(isObject) : [];
  // Images beyond the requested number are neither delivered nor charged.
  const requested = items.slice(0, typeof fields.n === "number" ? fields.n : 1);
  const image = await storeEach(requested, call, async (item) => {
    const { b64_json, url } = item;
    const about = pick(item, ["revised_prompt"]);
    const parts = typeof b64_json === "string" ? images[Number(b64_json)]?.splice(0) : undefined;
    if (parts?.length) await call.store(Buffer.concat(parts), about);
    else if (typeof url === "string")
      await storeAnswer(client, call, await client.download(url, imageLimitBytes, call.signal), about);
    else return false;
    return true;
  });
  return { output: pick(answer, outputFields), usage: { image } };
}
