import { z } from "zod";
import { speechRequest, transcriptionRequest } from "#formats";
import { storedCallHeaders } from "./headers.ts";
import { binary, file, type Group, json, operation, storing } from "./operation.ts";

const transcript = z
  .looseObject({
    text: z.string(),
    language: z.string().optional(),
    duration: z.number().optional().describe("Seconds"),
    segments: z.array(z.looseObject({ start: z.number(), end: z.number(), text: z.string() })).optional(),
  })
  .meta({ id: "Transcript", description: "What the model says of the recording" });

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
      examples: { speech: { summary: "A sentence", value: { model: "local/speech", input: "Hello.", voice: "alto" } } },
      responses: {
        "200": { description: "The audio, as the model's file", headers: storedCallHeaders, content: file },
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
