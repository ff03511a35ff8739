import { noCapacity, upstreamTimeout } from "#errors";

/** The errors of calls that this process ends itself. */

export const runTwice = () => noCapacity("The call was run twice; nothing was charged. Repeat it.", 1);
export const jobLost = () => noCapacity("The queue lost this call; nothing was charged. Repeat it.", 1);
/** Redis failed over to a replica that did not have the frame yet. */
export const frameLost = () => noCapacity("A part of the response was lost; nothing was charged. Repeat the call.", 1);
export const noMemory = () =>
  noCapacity("There is no memory for a response of this size right now; nothing was charged.", 2);
export const paused = () =>
  noCapacity("This instance was paused for too long; nothing was charged. Repeat the call.", 1);
export const outOfTime = () => upstreamTimeout("The call ran out of time.", { shouldRetry: false });
