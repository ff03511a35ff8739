import type { Request } from "express";
import type { Files } from "#files";
import type { Caller } from "#keys";
import { pageQuery, parse } from "../../http/input.ts";
import { renderPage } from "../../http/json-routes.ts";
import type { RunningCall, RunningCalls } from "../../open-calls/index.ts";

export interface OwnDeps {
  readonly running: Pick<RunningCalls, "list">;
  readonly files: Pick<Files, "generated">;
  readonly publicUrl: () => string;
}

/** What only the page asks for: calls that one waits for, and the files that they made. */
export function ownHandlers({ running, files, publicUrl }: OwnDeps) {
  return {
    running: async (_req: Pick<Request, "query">, caller: Caller) => ({
      object: "list",
      data: (await running.list(caller)).map(renderRunning),
      has_more: false,
      next: null,
    }),

    files: ({ query }: Pick<Request, "query">, { account }: Caller) =>
      renderPage(
        parse(pageQuery, query),
        (page) => files.generated.list(account, page),
        ({ id, requestId, contentType, bytes, createdAt, expiresAt }) => ({
          id,
          object: "file",
          request: requestId,
          type: contentType,
          bytes,
          created_at: Math.floor(createdAt / 1_000),
          expires_at: Math.floor(expiresAt / 1_000),
          url: `${publicUrl()}/media/${id}`,
        }),
      ),
  };
}

const renderRunning = ({ id, key, endpoint, model, pool, position, startedAt, elapsedMs }: RunningCall) => ({
  id,
  object: "running_call",
  key,
  endpoint,
  model,
  pool,
  stage: position === null ? "running" : "waiting",
  position,
  started_at: Math.floor(startedAt / 1_000),
  elapsed_ms: Math.round(elapsedMs),
});
