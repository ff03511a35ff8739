import { once } from "node:events";
import { z } from "zod";
import { fileExpired, invalidValue } from "#errors";
import { detect, unsupportedFile } from "#files";
import {
  audioCodec,
  audioJson,
  audioType,
  speechCall,
  speechRequest,
  transcriptionCall,
  transcriptionRequest,
} from "#formats";
import { type JsonObject, list, object, text } from "#json";
import { asksForJob } from "../async-call.ts";
import { answerJson } from "../http/answer.ts";
import { sendContinue } from "../http/body.ts";
import { withFileForm } from "../http/file-form.ts";
import { refTo } from "../http/openapi/formats/index.ts";
import { cachedCallHeaders, storedCallHeaders } from "../http/openapi/headers.ts";
import { binary, json } from "../http/openapi/operation.ts";
import { beginReading } from "../http/read-stored.ts";
import {
  bodyWithFiles,
  jobBody,
  type PaidRoute,
  type RouteAnswer,
  type RouteBodyDeps,
  type RouteRequest,
} from "../paid-route.ts";
import { file } from "./files.ts";
import { paid } from "./paid-operation.ts";

const recordingBody = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: transcriptionRequest.extend({ file: binary.describe("Up to 25 MB") }),
      example: { model: "local/transcription", file: "The bytes of a recording" },
    },
  },
};
const transcriptAnswer = {
  "200": {
    description: "The transcript, in the requested format",
    headers: storedCallHeaders,
    content: { ...json(refTo("Transcript")), "text/plain": { schema: z.string() } },
  },
};

const audioJob = { job: "media", codec: audioCodec, endsAtSyncTimeout: true } as const;

/** OpenAI's routes for audio. Their jobs are those of `/v1/media/generations`. */
export const audio = {
  name: "Audio",
  description: "Speech and transcripts in OpenAI's format",
  routes: [
    paid(
      {
        endpoint: "/v1/audio/speech",
        ...audioJob,
        serves: ({ task }) => task === "speech",
        readBody: readSpeechCall,
        cacheable: true,
        answer: writeSpeech,
      },
      {
        operationId: "createSpeech",
        summary: "Generate speech from text, priced per character",
        body: speechRequest,
        responses: {
          "200": {
            description:
              "The audio while it is generated or, with `stream_format: sse`, its events. With an `Idempotency-Key`, the whole file at once",
            headers: cachedCallHeaders,
            content: { ...file, "text/event-stream": { schema: refTo("SpeechEvent") } },
          },
        },
      },
    ),
    paid(
      {
        endpoint: "/v1/audio/transcriptions",
        ...audioJob,
        serves: ({ task }) => task === "transcription",
        readBody: readRecording,
        answer: async (_deps, answer) => writeTranscript(answer),
      },
      {
        operationId: "createTranscription",
        summary: "Transcribe a recording, priced per minute",
        requestBody: recordingBody,
        responses: transcriptAnswer,
      },
    ),
    paid(
      {
        endpoint: "/v1/audio/translations",
        ...audioJob,
        serves: ({ task, media: input }) =>
          task === "transcription" && object(input?.schema["properties"])["translate"] !== undefined,
        readBody: (deps, request) => readRecording(deps, request, { translate: true }),
        answer: async (_deps, answer) => writeTranscript(answer),
      },
      {
        operationId: "createTranslation",
        summary: "Transcribe a recording into English, with models that translate",
        requestBody: recordingBody,
        responses: transcriptAnswer,
      },
    ),
  ],
};

async function readSpeechCall({ readBody }: RouteBodyDeps, { req, res, caller }: RouteRequest) {
  const body = await readBody(req, res, caller);
  try {
    const isJob = asksForJob(req);
    const call = speechCall(body.value, isJob || req.get("idempotency-key") !== undefined);
    if (isJob && call["stream"])
      throw invalidValue("stream_format", "stream_format: an asynchronous call has no stream.");
    return jobBody(call, { release: () => body.release() });
  } catch (error) {
    body.release();
    throw error;
  }
}

/** The limit of the providers of transcription models. */
const recordingLimitBytes = 25 * 1024 * 1024;
const recordingForm = { fileBytes: recordingLimitBytes, formBytes: recordingLimitBytes, files: { file: 1 } };

async function readRecording(deps: RouteBodyDeps, request: RouteRequest, own: JsonObject = {}) {
  const { req, res, caller } = request;
  const { spoolBudget, clock } = deps;
  sendContinue(req, res);
  const share = spoolBudget.share(caller.account);
  return withFileForm(req, { rules: recordingForm, share, clock }, async ({ fields, files: [file] }) => {
    const { input, ...call } = transcriptionCall(fields, own);
    const type = file && (await detect(file.head));
    if (!type) throw unsupportedFile("file");
    if (type.kind === "image") throw invalidValue("file", "file: is an image, not a recording.");
    const jsonOf = ([id = ""]: readonly string[]) => ({ ...call, input: { ...input, file: id } });
    const rest = { release: () => {}, identity: JSON.stringify(jsonOf([file.hash])) };
    return bodyWithFiles(deps, request, [{ ...file, type }], jsonOf, rest);
  });
}

function writeTranscript({ res, text: answer, format }: RouteAnswer): void {
  const stored = object(JSON.parse(answer));
  const json = audioJson(stored, format);
  if (json) return answerJson(res.status(200), JSON.stringify(json));
  const transcript = text(object(stored["output"])["text"]);
  const bytes = Buffer.from(transcript.endsWith("\n") ? transcript : `${transcript}\n`);
  res.status(200).set({ "content-type": "text/plain; charset=utf-8", "content-length": String(bytes.length) });
  res.end(bytes);
}

const unknownType = "application/octet-stream";

/** Sends the generated file of a call whose answer is stored. */
async function writeSpeech({ files }: Parameters<NonNullable<PaidRoute["answer"]>>[0], answer: RouteAnswer) {
  const { res, format } = answer;
  const [made] = list(object(JSON.parse(answer.text))["files"]);
  const id = text(made?.["url"]).replace(/^.*\//s, "");
  const disconnected = new AbortController();
  const { signal } = disconnected;
  res.once("close", () => disconnected.abort());
  try {
    const file = await files.generated.find(id);
    if (!file || file === "expired") throw fileExpired();
    const open = (range?: { start: number; end: number }) => files.generated.open(id, range, signal);
    const chunks = await beginReading(open, undefined, 0, file.bytes - 1);
    if (!chunks) throw fileExpired();
    const type = audioType(file.contentType === unknownType ? undefined : file.contentType, format);
    res.status(200).set({ "content-type": type, "content-length": String(file.bytes) });
    for await (const chunk of chunks) {
      if (signal.aborted) return;
      if (!res.write(chunk)) await once(res, "drain", { signal });
    }
    res.end();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
