import { z } from "zod";
import type { Files } from "#files";
import type { Caller } from "#keys";
import { fields, tag, unixSecondsOfMs } from "../../http/fields.ts";
import { listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import { routeOf } from "../../http/route.ts";
import type { RunningCalls } from "../../open-calls/index.ts";

export interface OwnDeps {
  readonly running: Pick<RunningCalls, "list">;
  readonly files: Pick<Files, "generated">;
  readonly publicUrl: () => string;
}

const runningCall = fields({
  id: z.string(),
  object: tag("running_call"),
  key: z.string(),
  endpoint: z.string(),
  model: z.string(),
  pool: z.string(),
  stage: z.enum(["running", "waiting"]),
  position: z.int().nullable(),
  started_at: unixSecondsOfMs,
  elapsed_ms: z.int(),
});

const file = fields({
  id: z.string(),
  object: tag("file"),
  request: z.string(),
  type: z.string(),
  bytes: z.int(),
  created_at: unixSecondsOfMs,
  expires_at: unixSecondsOfMs,
  url: z.string(),
});

const route = routeOf<OwnDeps, Caller>();

/** Routes that only the page uses: calls that a person waits for, and the files that calls generated. */
export const ownRoutes = [
  route({
    method: "get",
    path: "/running",
    operationId: "listRunning",
    summary: "Calls for images and media that are in flight, newest first",
    answers: { 200: "The calls" },
    answer: listOf(runningCall),
    async handle({ running }, { who: caller }) {
      const calls = await running.list(caller);
      const shown = calls.map((call) => ({
        ...call,
        stage: call.position === null ? ("running" as const) : ("waiting" as const),
        elapsedMs: Math.round(call.elapsedMs),
      }));
      return wholeList(shown);
    },
  }),
  route({
    method: "get",
    path: "/files",
    operationId: "listFiles",
    summary: "Generated files that have not expired, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(file),
    handle: ({ files, publicUrl }, { who: { account }, query }) =>
      readPage(query, async (page) =>
        (await files.generated.list(account, page)).map((each) => ({
          ...each,
          request: each.requestId,
          type: each.contentType,
          url: `${publicUrl()}/media/${each.id}`,
        })),
      ),
  }),
];
