/** A value at a point in time. */
export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

/** A series of samples. The allowed growth has the same unit: the rise of the least-squares line over the whole run. */
export interface Series {
  readonly name: string;
  readonly samples: readonly Sample[];
  readonly mayGrowBy: number;
  /** The reason why it grows until its window ends, which is longer than the run. Never a finding. */
  readonly byDesign?: string;
}

export interface Slope {
  readonly name: string;
  readonly perHour: number;
  readonly start: number;
  readonly end: number;
  /** The rise of the line from the first sample to the last. */
  readonly grownBy: number;
  /** Three standard errors of the rise: anything smaller is noise. */
  readonly noise: number;
  readonly isFlat: boolean;
  readonly mayGrowBy: number;
  readonly byDesign?: string;
}

/** Fewer samples, of a process that was just replaced, prove nothing. */
const fewestSamples = 6;
/** Caches, pools and compiled code fill: the first part of the run does not count. */
const warmUpShare = 0.25;

export function slopeOf({ name, samples, mayGrowBy, byDesign }: Series): Slope | undefined {
  const counted = samples.slice(Math.ceil(samples.length * warmUpShare));
  const [first, last] = [counted[0], counted.at(-1)];
  if (!first || !last || counted.length < fewestSamples) return undefined;
  const mean = (of: (sample: Sample) => number) =>
    counted.reduce((sum, sample) => sum + of(sample), 0) / counted.length;
  const [meanAt, meanValue] = [mean(({ atMs }) => atMs), mean(({ value }) => value)];
  const spread = counted.reduce((sum, { atMs }) => sum + (atMs - meanAt) ** 2, 0);
  const slope = counted.reduce((sum, { atMs, value }) => sum + (atMs - meanAt) * (value - meanValue), 0) / spread;
  const residual = counted.reduce(
    (sum, { atMs, value }) => sum + (value - meanValue - slope * (atMs - meanAt)) ** 2,
    0,
  );
  const error = Math.sqrt(residual / (counted.length - 2) / spread);
  const durationMs = last.atMs - first.atMs;
  const [grownBy, noise] = [slope * durationMs, 3 * error * durationMs];
  return {
    name,
    perHour: slope * 3_600_000,
    start: first.value,
    end: last.value,
    grownBy,
    noise,
    isFlat: byDesign !== undefined || grownBy <= mayGrowBy || grownBy <= noise,
    mayGrowBy,
    ...(byDesign !== undefined && { byDesign }),
  };
}
