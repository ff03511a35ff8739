/** What came from outside and was not parsed: any field may be anything. */
export type Loose = Readonly<Record<string, unknown>>;

/** The fields of what should be an object; none of what is not. */
export const object = (value: unknown): Loose => (typeof value === "object" && value !== null ? (value as Loose) : {});
