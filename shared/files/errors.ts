import { noCapacity, type ServiceError, unsupportedMediaType, uploadDeleted, uploadExpired } from "#errors";
import { answered } from "#platform/mongo";

export const storageUnavailable = (cause: unknown) =>
  noCapacity("File storage cannot be reached right now; nothing was charged.", 5, cause);

export const isErrorNamed = (error: unknown, ...names: readonly string[]): boolean =>
  error instanceof Error && names.includes(error.name);

/** MongoDB's answer within seconds, or `noCapacity`. */
export async function fromMongo<T>(operation: Promise<T>): Promise<T> {
  try {
    return await answered(operation);
  } catch (error) {
    throw noCapacity("The records of files cannot be reached right now.", 1, error);
  }
}

/** The 410 of an upload that has ended. */
export const uploadEnded = ({ _id }: { _id: string }, status: "expired" | "deleted", param?: string): ServiceError =>
  status === "expired" ? uploadExpired(_id, param) : uploadDeleted(_id, param);

export const unsupportedFile = (param?: string) =>
  unsupportedMediaType("The file is not an image, video or audio file of an accepted type.", param);
