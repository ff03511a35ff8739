/**
 * The job catalog, the queues, both ends of the reply protocol, presence and cancellation (ARCHITECTURE, sections 3
 * and 4). Owns the Redis prefixes `bull:`, `reply:`, `cancelled:` and `worker:`, and the channel `cancel`.
 *
 * A queue only delivers: a job may be lost, doubled or late, and no money and no result is wrong for it.
 * Frames reach one API instance through one Redis stream; a gap in their count ends the call with an error.
 */
export { type Cancellations, createCancellations } from "./cancellations.ts";
export {
  isPaidCall,
  isPool,
  type JobName,
  type JobPayload,
  jobCatalog,
  type PaidCall,
  type PaidJobName,
  type Pool,
  pools,
} from "./catalog.ts";
export type { Frame, Outcome } from "./frames.ts";
export { createQueues, type Queues } from "./queues.ts";
export { createReplyReader, type ReplyReader } from "./reply-reader.ts";
export { createReplies, type Replies, type Reply } from "./reply-writer.ts";
export { announce, createWorkerRegistry, type WorkerRecord, type WorkerRegistry } from "./worker-registry.ts";
