import type { Answer, MockRequest } from "./mock-openai.ts";

/** The media endpoints of the mock OpenAI server: images, edits, speech, transcriptions, videos. */

/** A PNG of one pixel. */
export const mockPng = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
/** A tag and the heads of MPEG frames, 64 KB: an MP3 by its first bytes. */
export const mockMp3 = Buffer.concat([
  Buffer.from("ID3\x04\x00\x00\x00\x00\x00\x00", "latin1"),
  ...Array.from({ length: 157 }, () => Buffer.concat([Buffer.from("fffb9064", "hex"), Buffer.alloc(413)])),
]);
/** A file type box and a media box, 128 KB: an MP4 by its first bytes. */
export const mockMp4 = Buffer.concat([
  Buffer.from("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42", "latin1"),
  Buffer.from([0, 2, 0, 8]),
  Buffer.from("mdat"),
  Buffer.alloc(128 * 1024, 7),
]);
export const mockTranscript = "The quick brown fox.";
export const mockRecordingSeconds = 9;

const created = 1_700_000_000;

interface Job {
  readonly video: Readonly<Record<string, unknown>>;
  /** The status of the next polls; the last one is repeated. */
  readonly states: string[];
  readonly error: unknown;
}

const isVideo = /^\/v1\/videos\/([^/]+)(\/content)?$/;
const posts = [
  "images/generations",
  "images/edits",
  "audio/speech",
  "audio/transcriptions",
  "audio/translations",
  "videos",
];
export const isMedia = ({ method, path }: MockRequest): boolean =>
  method === "POST" ? posts.includes(path.replace("/v1/", "")) : isVideo.test(path);

const problem = (message: string, param: string | null = null): Answer => ({
  status: 400,
  body: { error: { message, type: "invalid_request_error", param, code: null } },
});

const missing = (id: string): Answer => ({
  status: 404,
  body: {
    error: { message: `Video with id '${id}' not found.`, type: "invalid_request_error", param: null, code: null },
  },
});

/** The default responses. `jobs` holds the running jobs. */
export function mediaAnswer(request: MockRequest, answer: Answer, jobs: Map<string, Job>): Answer {
  const { method, path, body } = request;
  const [, id, content] = isVideo.exec(path) ?? [];
  if (id !== undefined) return videoAnswer(method, id, content !== undefined, jobs);
  if (typeof body["model"] !== "string") return problem("you must provide a model parameter");
  switch (path) {
    case "/v1/images/generations":
    case "/v1/images/edits":
      return imagesAnswer(request);
    case "/v1/audio/speech":
      if (typeof body["input"] !== "string" || typeof body["voice"] !== "string") return problem("no input", "input");
      return fileAnswer("audio/mpeg", mockMp3);
    case "/v1/audio/transcriptions":
    case "/v1/audio/translations":
      return transcriptionAnswer(request);
    default:
      return newVideo(request, answer, jobs);
  }
}

/** A file in chunks, without its length. */
const fileAnswer = (type: string, bytes: Buffer): Answer => ({
  headers: { "content-type": type },
  events: [bytes.subarray(0, 1_000), bytes.subarray(1_000, 20_000), bytes.subarray(20_000)],
  done: false,
});

function imagesAnswer({ path, body, form }: MockRequest): Answer {
  if (typeof body["prompt"] !== "string") return problem("Missing required parameter: 'prompt'.", "prompt");
  if (String(body["model"]).startsWith("gpt-image") && "response_format" in body)
    return problem("Unknown parameter: 'response_format'.", "response_format");
  if (path.endsWith("edits") && !form?.some(({ name, filename }) => /^image(\[\])?$/.test(name) && filename))
    return problem("Missing required parameter: 'image'.", "image");
  const count = Number(body["n"] ?? 1);
  return {
    body: {
      created,
      background: "opaque",
      data: Array.from({ length: count }, () => ({ b64_json: mockPng.toString("base64") })),
      output_format: "png",
      quality: "low",
      size: "1024x1024",
      usage: {
        input_tokens: 8,
        input_tokens_details: { image_tokens: 0, text_tokens: 8 },
        output_tokens: 272 * count,
        total_tokens: 8 + 272 * count,
      },
    },
  };
}

function transcriptionAnswer({ body, form }: MockRequest): Answer {
  if (!form?.some(({ name, filename }) => name === "file" && filename?.includes(".")))
    return problem("Unrecognized file format.", "file");
  const format = typeof body["response_format"] === "string" ? body["response_format"] : "json";
  if (["text", "srt", "vtt"].includes(format))
    return { headers: { "content-type": "text/plain; charset=utf-8" }, body: `${mockTranscript}\n` };
  const seconds = mockRecordingSeconds;
  const verbose = {
    task: "transcribe",
    language: "english",
    duration: seconds - 0.5,
    segments: [{ id: 0, start: 0, end: seconds - 0.5, text: mockTranscript }],
  };
  return {
    body: {
      ...(format === "verbose_json" && verbose),
      text: mockTranscript,
      usage: { type: "duration", seconds },
    },
  };
}

function newVideo({ body }: MockRequest, { states = ["completed"], error }: Answer, jobs: Map<string, Job>): Answer {
  const seconds = body["seconds"] ?? "4";
  if (typeof seconds !== "string") return problem("Invalid type for 'seconds': expected a string.", "seconds");
  const id = `video_${jobs.size + 1}`;
  const video = {
    id,
    object: "video",
    created_at: created,
    completed_at: null,
    expires_at: null,
    error: null,
    model: body["model"],
    progress: 0,
    prompt: body["prompt"],
    remixed_from_video_id: null,
    seconds,
    size: body["size"] ?? "720x1280",
    status: "queued",
  };
  jobs.set(id, { video, states: [...states], error });
  return { body: video };
}

function videoAnswer(method: string, id: string, content: boolean, jobs: Map<string, Job>): Answer {
  const job = jobs.get(id);
  if (!job) return missing(id);
  if (method === "DELETE") {
    jobs.delete(id);
    return { body: { id, deleted: true, object: "video.deleted" } };
  }
  if (content) return fileAnswer("video/mp4", mockMp4);
  const status = job.states.length > 1 ? job.states.shift() : job.states[0];
  const isDone = status === "completed";
  return {
    body: {
      ...job.video,
      status,
      progress: isDone ? 100 : 40,
      ...(isDone && { completed_at: created + 60, expires_at: created + 3_600 }),
      ...(status === "failed" && { error: job.error ?? { code: "server_error", message: "It broke." } }),
    },
  };
}
