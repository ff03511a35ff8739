/** What came from outside and was not parsed: nothing is known of its fields. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** In UTF-8; 0 for what is no text. */
export const byteLength = (value: unknown): number => (typeof value === "string" ? Buffer.byteLength(value) : 0);

/** The fields of what should be an object; none of what is not. */
export const object = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null ? (value as JsonObject) : {};
