import type { ServiceError } from "#errors";

/** The common error body (specification, part 2, "Error body"). */
export const commonError = (error: ServiceError, requestId: string) => ({
  error: { message: error.message, type: error.type, code: error.code, param: error.param ?? null },
  request_id: requestId,
});
