/** Opens a value and seals it under the current key. */
export type Reseal = (account: string, id: string, sealed: string) => Promise<string>;

/** The sealed values of a module. `key` is the id of the current key. */
export interface SealedValues {
  /** Counts the documents with values under other keys. */
  countOthers(key: string): Promise<number>;
  /**
   * Seals the values under other keys again, document by document, each by a write that a concurrent change prevails over.
   * A value that cannot be opened is left as it is; `onFailure` is told. Resolves with the number of changed documents.
   */
  resealOthers(key: string, reseal: Reseal, onFailure: OnFailure, signal: AbortSignal): Promise<number>;
}

type OnFailure = (id: string, error: unknown) => void;

/** Matches sealed values, but not those under this key. */
export const underOtherKey = (key: string) => ({ $type: "string", $not: new RegExp(`^1\\.${key}\\.`) });
