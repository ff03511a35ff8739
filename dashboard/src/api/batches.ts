import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiError, base, client, request, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";
import { type Sending, send } from "./send.ts";

type Schemas = components["schemas"];
/** A batch of either interface. */
export interface Batch extends Readonly<Schemas["Batch"]> {
  /** The format in which it was created: `/v1/batches` or `/v1/messages/batches`. */
  readonly kind: "openai" | "anthropic";
}
export type BatchEndpoint = Schemas["NewBatch"]["endpoint"];

const isEndpoint: Readonly<Record<BatchEndpoint, true>> = {
  "/v1/chat/completions": true,
  "/v1/responses": true,
  "/v1/completions": true,
  "/v1/embeddings": true,
  "/v1/moderations": true,
  "/v1/images/generations": true,
};
export const batchEndpoints = Object.keys(isEndpoint) as readonly BatchEndpoint[];

export const kindName = ({ kind }: Pick<Batch, "kind">): string => (kind === "openai" ? "Batch" : "Message batch");

const ended: readonly Batch["status"][] = ["completed", "failed", "expired", "cancelled"];
export const isOpen = ({ status }: Pick<Batch, "status">): boolean => !ended.includes(status);
export const canBeCancelled = ({ status }: Pick<Batch, "status">): boolean =>
  status === "validating" || status === "in_progress";

const pageSize = 50;
const pollMs = 2_000;
/** Every loaded page is read again at each poll. */
const maxPolledPages = 2;

interface Page {
  readonly data: readonly Batch[];
  readonly next: string | null;
}

/** Polls while a listed batch is open. */
export const batchesQuery = infiniteQueryOptions({
  queryKey: ["batches", "list"],
  queryFn: ({ pageParam, signal }) =>
    request<Page>(`${base}/batches?limit=${pageSize}${pageParam && `&after=${pageParam}`}`, { signal }),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next ?? undefined,
  refetchInterval: ({ state }) => {
    const pages = state.data?.pages ?? [];
    return pages.length <= maxPolledPages && pages.some(({ data }) => data.some(isOpen)) ? pollMs : false;
  },
});

export const batchQuery = (id: string) =>
  queryOptions({
    queryKey: ["batches", "one", id],
    queryFn: ({ signal }) => request<Batch>(`${base}/batches/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data && !isOpen(state.data) ? false : pollMs),
  });

export const batchesChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["batches"] });

export async function cancelBatch({ id, kind }: Batch): Promise<void> {
  const params = { path: { id } };
  if (kind === "openai") await unwrap(client.POST("/v1/batches/{id}/cancel", { params }));
  else await unwrap(client.POST("/v1/messages/batches/{id}/cancel", { params }));
}

/** The browser saves what this address has, without loading it into the page. */
export const contentUrl = (fileId: string): string => `${base}/v1/files/${encodeURIComponent(fileId)}/content`;

export interface ResultFile {
  readonly label: string;
  readonly url: string;
  /** The name under which the browser saves it. Undefined: the service says. */
  readonly name?: string;
}

/** What a batch that has ended made: answers and errors, which a message batch has in one file. */
export function resultFiles({ kind, id, status, ...batch }: Batch): readonly ResultFile[] {
  const file = (label: string, fileId: string | null) => (fileId === null ? [] : [{ label, url: contentUrl(fileId) }]);
  if (kind === "openai")
    return [...file("Download the results", batch.output_file_id), ...file("Download the errors", batch.error_file_id)];
  if (isOpen({ status }) || status === "failed") return [];
  const url = `${base}/v1/messages/batches/${encodeURIComponent(id)}/results`;
  return [{ label: "Download the results", url, name: `${id}.jsonl` }];
}

/** Refused by the service, so that nothing exists. After a lost connection a batch may. */
const isRefused = (error: unknown) => error instanceof ApiError && error.status >= 400 && error.status < 500;

export interface NewBatch {
  readonly file: File;
  readonly endpoint: BatchEndpoint;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Uploads the file and creates its batch. A refused batch leaves no file. Throws an ApiError, or an AbortError. */
export async function submitBatch(
  { file, endpoint, metadata = {} }: NewBatch,
  sending: Sending,
): Promise<{ id: string }> {
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", file);
  const { id } = await send<Schemas["BatchFile"]>("POST", `${base}/v1/files`, form, undefined, sending);
  const body = { input_file_id: id, endpoint, completion_window: "24h", metadata: { ...metadata } } as const;
  try {
    return await unwrap(client.POST("/v1/batches", { body }));
  } catch (error) {
    // If the file cannot be deleted, the refusal is still what the user has to know; the file expires.
    if (isRefused(error)) await client.DELETE("/v1/files/{id}", { params: { path: { id } } }).catch(() => undefined);
    throw error;
  }
}

/** Creates a batch of messages from the JSON of its requests. Throws an ApiError, or an AbortError. */
export const submitMessages = (body: Blob, sending: Sending): Promise<{ id: string }> =>
  send("POST", `${base}/v1/messages/batches`, body, "application/json", sending);
