import { isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { failureInside } from "../http/failures.ts";
import type { ProviderClient } from "../http/provider-client.ts";
import { retryDownload, storeAnswer } from "../http/read-answer.ts";
import { runJob } from "../http/run-job.ts";
import { type Generated, type GenerationCall, refusal, UpstreamFailure } from "../provider.ts";
import { imagesIn, readBase64, refused, refuseOtherUploads, textIn } from "./media.ts";

/** A job is a background interaction (https://ai.google.dev/api/interactions-api). */
export const video = (client: ProviderClient, call: GenerationCall): Promise<Generated> =>
  runJob(client.clock, call, {
    submit: async () => client.sendForJson({ path: "/interactions", json: await requestFor(call) }, call),
    idOf: ({ id }) => id,
    async poll(id, signal) {
      try {
        return await client.sendForJson({ path: pathOf(id) }, { ...call, signal });
      } catch (error) {
        // The provider answers 400 for a job that does not exist, which is not the caller's fault.
        if (!(error instanceof UpstreamFailure) || error.kind !== "refused") throw error;
        throw new UpstreamFailure("misconfigured", error.message, { cause: error });
      }
    },
    running: ["queued", "in_progress"],
    ended: [
      "completed",
      "failed",
      "cancelled",
      "incomplete",
      "budget_exceeded",
      "requires_action",
      "requires_continuation",
    ],
    async collect(job) {
      await storeVideo(client, call, videoIn(job, client.clock));
      return { output: {}, usage: { second: secondsIn(call.input) } };
    },
    async cancel(id, signal) {
      const context = { ...call, signal };
      const discard = async ({ body }: Awaited<ReturnType<ProviderClient["send"]>>) => void (await body.return?.());
      // A finished job cannot be canceled, but it can be deleted.
      await client.send({ method: "POST", path: `${pathOf(id)}/cancel`, json: {} }, context).then(discard, () => {});
      await client.send({ method: "DELETE", path: pathOf(id) }, context).then(discard);
    },
  });

const pathOf = (id: string) => `/interactions/${encodeURIComponent(id)}`;

const maxReferences = 6;
/** The answer to a poll may contain the images of the request. */
const imagesLimitBytes = 32 * 1024 * 1024;

async function requestFor(call: GenerationCall): Promise<JsonObject> {
  const { aspect_ratio, resolution, seed } = call.input;
  const text = textIn(call.input, "prompt");
  const duration = `${secondsIn(call.input)}s`;
  const first = imagesIn(call, "image", 1);
  const references = imagesIn(call, "reference_images", maxReferences);
  if (first.length > 0 && references.length > 0)
    throw refused("reference_images", "this model takes them or a first image, not both.");
  const files = [...first, ...references];
  refuseOtherUploads(call, files);
  const contents = await readBase64(files, imagesLimitBytes);
  const images = contents.map(({ mime: mime_type, data }) => ({ type: "image", data, mime_type }));
  const task = first.length > 0 ? "image_to_video" : references.length > 0 ? "reference_to_video" : "text_to_video";
  return {
    model: call.model,
    input: [...images, { type: "text", text }],
    response_format: { type: "video", delivery: "uri", duration, aspect_ratio, resolution },
    generation_config: { video_config: { task }, seed },
    // In the foreground, the answer would arrive when the video is done. The provider requires that background work is stored.
    background: true,
    store: true,
  };
}

/** Whole seconds, as a number or text. */
function secondsIn({ duration }: JsonObject): number {
  const seconds = typeof duration === "string" && /^\d{1,3}$/.test(duration) ? Number(duration) : duration;
  if (typeof seconds === "number" && Number.isInteger(seconds) && seconds > 0) return seconds;
  throw refused("duration", "a whole number of seconds is needed.");
}

const maxTextCharacters = 500;
const safety = /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|BLOCKLIST|SPII)$/i;

const objectsIn = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The video of an interaction, by `uri` or as `data`. Throws the reason if there is none. */
function videoIn(interaction: JsonObject, clock: Clock): JsonObject {
  const { status, steps } = interaction;
  const outputs = objectsIn(steps).filter(({ type }) => type === "model_output");
  const content = outputs.flatMap((step) => objectsIn(step.content));
  const found = content.find(
    ({ type, uri, data }) => type === "video" && [uri, data].some((value) => typeof value === "string" && value !== ""),
  );
  if (found && status === "completed") return found;
  const error = errorIn(interaction, outputs);
  if (error) throw failureInside({ error }, clock);
  const text = content.map((each) => (typeof each.text === "string" ? each.text : "")).join(" ");
  // The provider explains a refusal in the text of a completed interaction.
  if (status === "completed" && text !== "")
    throw refusal(`The model made no video. ${text.slice(0, maxTextCharacters)}`);
  throw new UpstreamFailure("unavailable", `a video job that ended as ${String(status)}, without a video`);
}

/** The error, as `failureInside` reads it. If the video was withheld for safety, the request is at fault. */
function errorIn(interaction: JsonObject, outputs: readonly JsonObject[]): JsonObject | undefined {
  const { error, errors, finish_reason } = interaction;
  const [first] = [error, ...objectsIn(errors), ...outputs.map((step) => step.error)].filter(isObject);
  const isWithheld = [first?.code, first?.status, finish_reason].some(
    (value) => typeof value === "string" && safety.test(value),
  );
  if (isWithheld) return { message: first?.message ?? "The video was withheld for safety.", code: 400 };
  return first;
}

const videoLimitBytes = 512 * 1024 * 1024;
/** Matches the path of a file in the provider's store, below the version. */
const storedFile = /\/(files\/[\w-]{1,100}):download$/;

async function storeVideo(client: ProviderClient, call: GenerationCall, { uri, data }: JsonObject): Promise<void> {
  if (typeof data === "string") return call.store(Buffer.from(data, "base64"));
  const url = String(uri);
  const file = storedFile.exec(URL.parse(url)?.pathname ?? "")?.[1];
  await retryDownload(client, call, async () => {
    // The key is sent only to the operator's address, never to one that an answer names.
    const answer = await (file === undefined
      ? client.download(url, videoLimitBytes, call.signal)
      : client.send({ path: `/${file}:download?alt=media`, accept: "video/*, */*;q=0.5" }, call));
    await storeAnswer(client, call, answer);
  });
}
