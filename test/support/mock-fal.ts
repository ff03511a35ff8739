import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";
import { addressed, mockFiles } from "./mock-replicate.ts";

/**
 * A mock of fal's queue, in the shapes of https://fal.ai/docs/documentation/model-apis/inference/queue: submit, status,
 * result, cancel; and the files under `/out/`. A request that is canceled while it is queued is removed and not billed;
 * one in progress continues, and is billed.
 */
export interface MockFal extends MockProvider<Answer> {
  /** The number of billed requests, with those in progress. */
  billed(): number;
}

interface Answer extends ProviderAnswer {
  /** The states of a new request, one for each poll; the last one is repeated. */
  readonly states?: readonly string[];
  /** The output, in which file names become URLs. By default an image. */
  readonly output?: unknown;
  /** The response for the result, in place of the output. */
  readonly result?: Usual;
  /** Reported with the last state. */
  readonly failed?: Readonly<Record<string, unknown>>;
}

interface Job {
  /** The last reported state. */
  reported: string;
  isCancelled: boolean;
  readonly states: string[];
  readonly result: Usual;
  readonly failed: Readonly<Record<string, unknown>>;
}

export const mockRequestId = "764cabcf-b745-4b3e-ae38-1200304cf45b";
const image = {
  images: [{ url: "0.png", width: 1, height: 1, content_type: "image/png" }],
  timings: { inference: 0.5 },
  seed: 7,
  has_nsfw_concepts: [false],
  prompt: "a fox",
};

/** A model's error, in fal's shape. */
export const falError = (
  status: number,
  type: string,
  msg: string,
  { loc = ["body"], headers = {} }: { loc?: readonly (string | number)[]; headers?: Record<string, string> } = {},
): Answer => ({ status, headers, body: { detail: [{ loc, msg, type, url: `https://docs.fal.ai/errors/#${type}` }] } });

export async function startMockFal(options?: MockOptions): Promise<MockFal> {
  const jobs = new Map<string, Job>();
  const usual = (request: MockRequest, scripted: Answer): Usual => {
    const { method, path, headers } = request;
    const [, file] = /^\/out\/[^/]+\.(\w+)$/.exec(path) ?? [];
    if (file !== undefined) return mockFiles[file] ?? { status: 404, body: { detail: "Not Found" } };
    if (headers.authorization !== "Key fal-operator") return { status: 401, body: { detail: "No user found" } };
    // The path starts with an owner and an application, whatever the rest of the endpoint is.
    const [, id = "", what] = /^\/[^/]+\/[^/]+\/requests\/([\w-]+)(\/status|\/cancel)?(?:\?.*)?$/.exec(path) ?? [];
    const job = jobs.get(id);
    if (job && what === "/status") return statusOf(job);
    if (job && what === "/cancel") return cancel(job);
    if (job) return job.result;
    if (method !== "POST" || id !== "") return { status: 404, body: { detail: "Not Found" } };
    const body = addressed(scripted.output ?? image, `http://${headers.host}/out/`);
    const { states = ["COMPLETED"], result = { body }, failed = {} } = scripted;
    jobs.set(mockRequestId, { reported: "IN_QUEUE", isCancelled: false, states: [...states], result, failed });
    return { body: { status: "IN_QUEUE", request_id: mockRequestId, queue_position: 0 } };
  };
  const frame = (event: object) => JSON.stringify(event);
  const mock = await startMockProvider<Answer>({ usual, frame, reset: () => jobs.clear() }, options);
  const billed = () => [...jobs.values()].filter(({ isCancelled }) => !isCancelled).length;
  return Object.assign(mock, { billed });
}

function cancel(job: Job): Usual {
  if (job.reported === "COMPLETED") return { status: 400, body: { status: "ALREADY_COMPLETED" } };
  job.isCancelled ||= job.reported === "IN_QUEUE";
  return { status: 202, body: { status: "CANCELLATION_REQUESTED" } };
}

function statusOf(job: Job): Usual {
  const { states, failed: failure, isCancelled } = job;
  const failed = isCancelled ? { error: "Request cancelled", error_type: "client_cancelled" } : failure;
  const status = isCancelled ? "COMPLETED" : ((states.length > 1 ? states.shift() : states[0]) ?? "COMPLETED");
  job.reported = status;
  const over = status === "COMPLETED";
  return {
    status: over ? 200 : 202,
    body: { status, request_id: mockRequestId, ...(over && { metrics: { inference_time: 1.5 }, ...failed }) },
  };
}
