/** A chat request as it came or was translated: any field may be anything. */
export type Loose = Readonly<Record<string, unknown>>;

export const object = (value: unknown): Loose =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {};
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
