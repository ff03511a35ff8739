import type { JobName, JobPayload, Queues } from "#jobs";
import { type CallDeps, runCall } from "../call.ts";
import { chat } from "./chat.ts";
import { count } from "./count.ts";
import { embeddings } from "./embeddings.ts";
import { expireBodies } from "./expire-bodies.ts";
import { expireFiles } from "./expire-files.ts";
import { image, media } from "./generate.ts";
import { sweepHolds } from "./sweep-holds.ts";

export interface HandlerDeps extends CallDeps {
  readonly queues: Queues;
}

/** `delivery` counts from 1: a job that comes again was with a worker that died. */
export type Handler<Name extends JobName> = (
  deps: HandlerDeps,
  payload: JobPayload<Name>,
  delivery: number,
) => Promise<void>;

/** Every job's handler, all on one screen. */
export const handlers: { readonly [Name in JobName]: Handler<Name> } = {
  chat: (deps, payload, delivery) => runCall(deps, payload, delivery, chat),
  count: (deps, payload, delivery) => runCall(deps, payload, delivery, count),
  embeddings: (deps, payload, delivery) => runCall(deps, payload, delivery, embeddings),
  image: (deps, payload, delivery) => runCall(deps, payload, delivery, image),
  media: (deps, payload, delivery) => runCall(deps, payload, delivery, media),
  "sweep-holds": (deps) => sweepHolds(deps),
  "expire-files": (deps) => expireFiles(deps),
  "expire-bodies": (deps) => expireBodies(deps),
};
