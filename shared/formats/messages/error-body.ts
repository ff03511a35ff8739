import type { ServiceError } from "#errors";

/** wire-details, "Errors". */
function errorType({ status }: ServiceError): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
    case 405:
    case 410:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

/** By it the provider's clients know to send the whole conversation where a thread cannot be kept. */
const unthreaded = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

export function errorBody(error: ServiceError, requestId: string): string {
  const details = error.code === "invalid_value" && error.param === "thread" ? { details: unthreaded } : {};
  return JSON.stringify({
    type: "error",
    error: { ...details, type: errorType(error), message: error.message },
    request_id: requestId,
  });
}
