import { conflict, noCapacity, upstreamTimeout } from "#errors";

/** The errors of jobs that have no answer because of their caller or of the queue, wherever they are noticed. */

export const jobCancelled = () => conflict("The job was cancelled.");
export const jobNeverBegan = () => upstreamTimeout("No worker was free in time; nothing was charged.");
/** The reason could not be stored. */
export const jobFailed = () => noCapacity("The call failed.", 1);
