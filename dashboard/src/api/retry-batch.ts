import { counted, createTextGatherer, jsonLines } from "../lib/json-lines.ts";
import { type Batch, type BatchEndpoint, contentUrl, resultFiles, submitBatch, submitMessages } from "./batches.ts";
import { ApiError, errorOf, unreachable } from "./client.ts";

/** A batch of the lines of another one that failed or did not run. The browser reads what it had, and uploads a part of it. */

export const retrySteps = ["Reading the errors", "Reading the input", "Uploading the lines"] as const;

export interface RetryProgress {
  readonly step: (typeof retrySteps)[number];
  /** From 0 to 1; undefined until it is known. */
  readonly done: number | undefined;
}

interface Retrying {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: RetryProgress) => void;
}

const failure = (status: number, message: string, requestId?: string) =>
  new ApiError(status, { error: { message } }, requestId);

/** Throws an error that names what was read when it broke off. Rethrows an abort, and other errors of the service. */
function explained(error: unknown, what: string): never {
  if (error instanceof SyntaxError) throw new Error(`The ${what} of this batch has a line that is not JSON.`);
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  if (!(error instanceof ApiError))
    throw failure(0, `The connection broke while the ${what} was read. Nothing was created.`);
  const { status, requestId } = error;
  if (status !== 404 && status !== 410) throw error;
  throw failure(
    status,
    `The ${what} of this batch has expired or was deleted: its lines cannot be retried.`,
    requestId,
  );
}

/** Calls `onLine` with each line of a file. */
async function readLines<Line>(
  url: string,
  [what, step]: readonly [what: string, step: RetryProgress["step"]],
  { signal, onProgress }: Retrying,
  onLine: (line: { text: string; value: Line }) => void,
): Promise<void> {
  onProgress({ step, done: undefined });
  try {
    const response = await fetch(url, { signal }).catch(unreachable);
    if (!response.ok || !response.body) throw await errorOf(response);
    const bytes = Number(response.headers.get("content-length"));
    const content = counted(response.body, (read) => {
      onProgress({ step, done: bytes > 0 ? Math.min(1, read / bytes) : undefined });
    });
    for await (const line of jsonLines<Line>(content)) onLine(line);
  } catch (error) {
    explained(error, what);
  }
}

interface Result {
  readonly custom_id: string;
  /** Of a message batch. */
  readonly result?: { readonly type: string };
}

interface InputLine {
  readonly custom_id: string;
  readonly body: unknown;
}

const [readingErrors, readingInput, uploading] = retrySteps;

/** The ids of the lines that failed or did not run. */
async function failedIds(batch: Batch, retrying: Retrying): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const url = batch.kind === "openai" ? contentUrl(batch.error_file_id ?? "") : (resultFiles(batch)[0]?.url ?? "");
  await readLines<Result>(url, ["error file", readingErrors], retrying, ({ value: { custom_id, result } }) => {
    if (result?.type !== "succeeded") ids.add(custom_id);
  });
  return ids;
}

/** Reads the batch's input and errors one after the other, and keeps the failed lines alone. */
export async function retryFailed(batch: Batch, retrying: Retrying): Promise<{ id: string }> {
  const { signal, onProgress } = retrying;
  const ids = await failedIds(batch, retrying);
  const kept = createTextGatherer();
  let count = 0;
  const isMessages = batch.kind === "anthropic";
  await readLines<InputLine>(contentUrl(batch.input_file_id), ["input file", readingInput], retrying, (line) => {
    const { custom_id, body } = line.value;
    if (!ids.has(custom_id)) return;
    if (isMessages) kept.add(`${count > 0 ? "," : ""}${JSON.stringify({ custom_id, params: body })}`);
    else kept.add(`${line.text}\n`);
    count++;
  });
  if (count === 0) throw new Error("The input file has none of the lines that failed, so nothing can be retried.");

  const parts = isMessages ? ['{"requests":[', ...kept.blobs(), "]}"] : [...kept.blobs()];
  const file = new File(parts, `retry-of-${batch.id}.jsonl`);
  const sending = {
    signal,
    onSent: (sent: number) => onProgress({ step: uploading, done: Math.min(1, sent / file.size) }),
  };
  sending.onSent(0);
  return isMessages
    ? submitMessages(file, sending)
    : submitBatch({ file, endpoint: batch.endpoint as BatchEndpoint, metadata: batch.metadata }, sending);
}

export const canBeRetried = (batch: Batch): boolean =>
  batch.kind === "openai"
    ? batch.error_file_id !== null
    : resultFiles(batch).length > 0 && batch.request_counts.failed > 0;
