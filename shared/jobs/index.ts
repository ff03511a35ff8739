/**
 * The job catalog, the queues, both ends of the reply protocol, cancellation, and the worker registry. Owns the Redis
 * prefixes `{<queue>}:`, `reply:`, `delivered:`, `cancelled:` and `{worker}:`, and the channels `cancel`, `disconnect`, `pause` and
 * `resume`.
 *
 * A queue only delivers: jobs may be lost, duplicated or delayed without harm to money or results. Frames reach an API
 * instance through one Redis stream; a gap in their numbers ends the call with an error.
 */
export { backendOf } from "./call-backend.ts";
export { type Cancellations, createCancellations } from "./cancellations.ts";
export {
  type CallTarget,
  type CallUpstream,
  callPools,
  type DetachedCallJob,
  detachedCallJob,
  isOwnUpstream,
  isPool,
  isTextPool,
  type JobName,
  type JobPayload,
  jobCatalog,
  type OwnUpstream,
  type PaidCall,
  type PaidJobName,
  type Pool,
  paidCall,
  payloadsOf,
  pools,
  replyAddress,
} from "./catalog.ts";
export { createDelivered } from "./delivered.ts";
export { type Frame, type Outcome, type Pace, splitText } from "./frames.ts";
export { createQueues, type QueuedJob, type Queues } from "./queues.ts";
export { createReplyReader, type ReplyReader } from "./reply-reader.ts";
export { createReplies, type Replies, type Reply } from "./reply-writer.ts";
export { prefixOf } from "./shards.ts";
export { type Speeds, speedKey } from "./speeds.ts";
export {
  bestStates,
  createWorkerRegistry,
  type KnownWorker,
  lastFailureOf,
  readWorkers,
  registerWorker,
  type UpstreamState,
  upstreamStates,
  type WorkerRecord,
  type WorkerRegistry,
} from "./worker-registry.ts";
