/**
 * What Google says of an error beside its message. https://cloud.google.com/apis/design/errors,
 * https://ai.google.dev/gemini-api/docs/troubleshooting
 */
interface GoogleError {
  /** The name of the status: `RESOURCE_EXHAUSTED`. */
  readonly type?: string;
  /** Why exactly: `API_KEY_INVALID`. */
  readonly detail?: string;
  readonly retryAfterMs?: number;
}

const codes: Readonly<Record<number, string>> = {
  3: "INVALID_ARGUMENT",
  4: "DEADLINE_EXCEEDED",
  5: "NOT_FOUND",
  7: "PERMISSION_DENIED",
  8: "RESOURCE_EXHAUSTED",
  9: "FAILED_PRECONDITION",
  13: "INTERNAL",
  14: "UNAVAILABLE",
  16: "UNAUTHENTICATED",
};

/** `invalid_request` is what interactions say. */
export const googleStatuses: Readonly<Record<string, number>> = {
  invalid_request: 400,
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

export function readGoogleError({ status, code, details }: Readonly<Record<string, unknown>>): GoogleError {
  const name = typeof status === "string" ? status : typeof code === "number" ? codes[code] : undefined;
  const infos = Array.isArray(details) ? (details.filter(Boolean) as readonly Readonly<Record<string, unknown>>[]) : [];
  const reason = infos.map((info) => info.reason).find((value) => typeof value === "string");
  const delay = infos.map((info) => info.retryDelay).find((value) => typeof value === "string");
  const seconds = Number(/^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(delay ?? "")?.[1]);
  return {
    ...(name !== undefined && { type: name }),
    ...(reason !== undefined && { detail: reason }),
    ...(seconds >= 0 && { retryAfterMs: Math.round(seconds * 1000) }),
  };
}
