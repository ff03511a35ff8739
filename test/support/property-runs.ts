/** Set by `npm run test:properties`, and for nightly runs of tests that take long. */
export const isFull = process.env["TEST_RUNS"] === "full";

/** How often a property runs: `usual` times in `npm test`, `full` times in `npm run test:properties`. */
export const runs = (full: number, usual = Math.min(full, 200)): number => (isFull ? full : usual);
