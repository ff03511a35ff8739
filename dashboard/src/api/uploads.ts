import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, base, client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";
import { type Sending, send } from "./send.ts";

export type Upload = components["schemas"]["Upload"];

const maxUploadBytes = 200 * 1024 * 1024;
/** Larger files go to storage directly, in parts. */
const rawLimitBytes = 95 * 1000 * 1000;

export const uploadsQuery = infiniteQueryOptions({
  queryKey: ["uploads"],
  queryFn: ({ pageParam: after, signal }) =>
    unwrap(client.GET("/v1/uploads", { params: { query: { limit: 50, ...(after && { after }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next ?? undefined,
});

/** Its link lives for 15 minutes. */
const linkMs = 10 * 60_000;

export const uploadQuery = (id: string) =>
  queryOptions({
    queryKey: ["uploads", "one", id],
    queryFn: ({ signal }) => unwrap(client.GET("/v1/uploads/{id}", { params: { path: { id } }, signal })),
    staleTime: linkMs,
  });

export const deleteUpload = (id: string) => unwrap(client.DELETE("/v1/uploads/{id}", { params: { path: { id } } }));

async function uploadInParts(file: File, { signal, onSent }: Sending): Promise<Upload> {
  const body = { bytes: file.size, mime: file.type || "application/octet-stream" };
  const pending = await unwrap(client.POST("/v1/uploads", { body, signal } as never) as ReturnType<typeof complete>);
  let offset = 0;
  for (const { url, bytes } of pending.part_urls ?? []) {
    const start = offset;
    const part = file.slice(start, start + bytes);
    // Remove the blob's type, because the link's signature does not include one.
    await send("PUT", url, part.slice(0, part.size, ""), undefined, { signal, onSent: (sent) => onSent(start + sent) });
    offset += bytes;
  }
  return unwrap(complete(pending.id));
}

const complete = (id: string) => client.POST("/v1/uploads/{id}/complete", { params: { path: { id } } });

/** Uploads one file. Throws an ApiError, or an AbortError after a stop. */
export function upload(file: File, sending: Sending): Promise<Upload> {
  if (file.size > maxUploadBytes) throw new ApiError(413, { error: { message: "A file may have at most 200 MB." } });
  if (file.size > rawLimitBytes) return uploadInParts(file, sending);
  return send<Upload>("POST", `${base}/v1/uploads`, file, file.type || "application/octet-stream", sending);
}
