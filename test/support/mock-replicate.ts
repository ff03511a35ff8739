import { mockMp3, mockMp4, mockPng } from "./mock-openai-media.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A mock of Replicate's API: predictions of official models and of versions, in the shapes of
 * https://replicate.com/docs/reference/http, and their files under `/v1/out/`. Its `url` has the `/v1`. A prediction
 * that is canceled before it processes is not billed; after that it is, although it has no output.
 */
export interface MockReplicate extends MockProvider<Answer> {
  /** The number of billed predictions, with those in progress. */
  billed(): number;
}

interface Answer extends ProviderAnswer {
  /** The states of a new prediction, one for the submission and each poll; the last one is repeated. */
  readonly states?: readonly string[];
  /** The output, in which file names become URLs. By default two images. */
  readonly output?: unknown;
  readonly error?: unknown;
  readonly logs?: string;
  readonly metrics?: Readonly<Record<string, unknown>>;
}

interface Job {
  /** The last reported state. */
  reported: string;
  hasStarted: boolean;
  readonly prediction: Readonly<Record<string, unknown>>;
  readonly states: string[];
  readonly ended: Readonly<Record<string, unknown>>;
}

export const mockId = "rrr4z55ocneqzikepnug6xezpe";
/** The files of an output, by the ends of their names. */
export const mockFiles: Readonly<Record<string, Usual>> = {
  png: { headers: { "content-type": "image/png" }, body: mockPng },
  mp4: { headers: { "content-type": "video/mp4" }, body: mockMp4 },
  mp3: { headers: { "content-type": "audio/mpeg" }, body: mockMp3 },
  txt: { headers: { "content-type": "text/plain" }, body: "words" },
};

/** An error in Replicate's shape. */
export const replicateError = (status: number, detail: string, more: object = {}): Answer => ({
  status,
  headers: { "content-type": "application/problem+json" },
  body: { title: "Error", detail, status, ...more },
});

export async function startMockReplicate(options?: MockOptions): Promise<MockReplicate> {
  const jobs = new Map<string, Job>();
  const usual = (request: MockRequest, scripted: Answer): Usual => {
    const { method, path, headers } = request;
    const [, file] = /^\/v1\/out\/[^/]+\.(\w+)$/.exec(path) ?? [];
    if (file !== undefined) return mockFiles[file] ?? replicateError(404, "no such file");
    if (headers.authorization !== "Bearer r8-operator")
      return replicateError(401, "You did not pass a valid authentication token", { title: "Unauthenticated" });
    const [, id = "", cancel] = /^\/v1\/predictions\/(\w+)(\/cancel)?$/.exec(path) ?? [];
    const job = jobs.get(id);
    if (job && cancel && !isEnded(job.reported)) job.states.splice(0, Number.POSITIVE_INFINITY, "canceled");
    if (job) return { body: stateOf(job) };
    if (method !== "POST" || !/^\/v1\/(models\/[^/]+\/[^/]+\/)?predictions$/.test(path))
      return replicateError(404, "The requested resource could not be found.");
    if (typeof request.body["input"] !== "object") return replicateError(422, "- input is required\n");
    const created = begun(request, scripted, `http://${headers.host}/v1/out/`);
    jobs.set(mockId, created);
    return { status: 201, body: stateOf(created) };
  };
  const frame = (event: object) => JSON.stringify(event);
  const mock = await startMockProvider<Answer>({ path: "/v1", usual, frame, reset: () => jobs.clear() }, options);
  const billed = () =>
    [...jobs.values()].filter(({ reported, hasStarted }) => hasStarted || reported !== "canceled").length;
  return Object.assign(mock, { billed });
}

function begun({ path, body }: MockRequest, scripted: Answer, at: string): Job {
  const { states = ["starting", "succeeded"], output = ["0.png", "1.png"], error = null, metrics } = scripted;
  const prediction = {
    id: mockId,
    model: path.split("/").slice(3, 5).join("/"),
    version: body["version"] ?? "hidden",
    input: body["input"],
    logs: scripted.logs ?? "",
    data_removed: false,
    source: "api",
    created_at: "2026-01-01T00:00:00.000Z",
    urls: { get: `https://api.replicate.com/v1/predictions/${mockId}` },
  };
  const ended = { output: addressed(output, at), error, metrics: { predict_time: 1.5, total_time: 2, ...metrics } };
  return { reported: "starting", hasStarted: false, prediction, states: [...states], ended };
}

const isEnded = (status: string) => status !== "starting" && status !== "processing";

function stateOf(job: Job): object {
  const { prediction, states, ended } = job;
  const status = (states.length > 1 ? states.shift() : states[0]) ?? "succeeded";
  job.reported = status;
  job.hasStarted ||= status !== "starting" && status !== "canceled";
  const common = { ...prediction, status, started_at: job.hasStarted ? "2026-01-01T00:00:01.000Z" : null };
  if (!isEnded(status)) return { ...common, output: null, error: null };
  return status === "canceled" ? { ...common, output: null, error: null, metrics: {} } : { ...common, ...ended };
}

/** Replaces file names by URLs, at any depth. */
export function addressed(value: unknown, at: string): unknown {
  if (typeof value === "string") return /^\w+\.(png|mp4|mp3|txt)$/.test(value) ? at + value : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => addressed(each, at));
  return Object.fromEntries(Object.entries(value).map(([field, each]) => [field, addressed(each, at)]));
}
