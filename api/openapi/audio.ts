import { z } from "zod";
import { speechRequest, transcriptionRequest } from "#formats";
import { storedCallHeaders } from "../http/openapi/headers.ts";
import { binary, type Group, json, operation, storing } from "../http/openapi/operation.ts";
import { file } from "../routes/files.ts";

const transcript = z
  .looseObject({
    text: z.string(),
    language: z.string().optional(),
    duration: z.number().optional().describe("Seconds"),
    segments: z.array(z.looseObject({ start: z.number(), end: z.number(), text: z.string() })).optional(),
  })
  .meta({ id: "Transcript", description: "What the model says of the recording" });

const speechEvent = z
  .union([
    z.object({ type: z.literal("speech.audio.delta"), audio: z.string().describe("base64") }),
    z.object({
      type: z.literal("speech.audio.done"),
      usage: z.object({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }),
    }),
  ])
  .meta({ id: "SpeechEvent", description: "The data of one event; the tokens are an estimate" });

const recordingForm = {
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
    content: { ...json(transcript), "text/plain": { schema: z.string() } },
  },
};

export const audio: Group = {
  name: "Audio",
  description: "Speech and transcripts in OpenAI's format",
  operations: {
    "POST /v1/audio/speech": operation("createSpeech", "Speech from a text, priced per character", {
      ...storing,
      body: speechRequest,
      examples: {
        speech: { summary: "A sentence", value: { model: "local/speech", input: "Hello.", voice: "alto" } },
        events: {
          summary: "The same as events",
          value: { model: "local/speech", input: "Hello.", voice: "alto", stream_format: "sse" },
        },
      },
      responses: {
        "200": {
          description:
            "The audio while it is generated, or, for `stream_format: sse`, its events. Under an `Idempotency-Key` the whole file",
          headers: storedCallHeaders,
          content: { ...file, "text/event-stream": { schema: speechEvent } },
        },
      },
    }),
    "POST /v1/audio/transcriptions": operation("createTranscription", "The text of a recording, priced per minute", {
      ...storing,
      requestBody: recordingForm,
      responses: transcriptAnswer,
    }),
    "POST /v1/audio/translations": operation("createTranslation", "The same in English, of the models that translate", {
      ...storing,
      requestBody: recordingForm,
      responses: transcriptAnswer,
    }),
  },
};
