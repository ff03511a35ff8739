import { noCapacity } from "#errors";
import { answered } from "#platform/mongo";

/** Storage does not do what it should. */
export const storageUnavailable = (cause: unknown) =>
  noCapacity("File storage cannot be reached right now; nothing was charged.", 5, cause);

export const isNamed = (error: unknown, ...names: readonly string[]): boolean =>
  error instanceof Error && names.includes(error.name);

/** MongoDB's answer within seconds, or `noCapacity`. */
export async function reach<T>(operation: Promise<T>): Promise<T> {
  try {
    return await answered(operation);
  } catch (error) {
    throw noCapacity("The records of files cannot be reached right now.", 1, error);
  }
}
