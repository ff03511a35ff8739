import type { IncomingHttpHeaders } from "node:http";
import { isObject, object, text } from "#json";
import type { Clock } from "#platform/clock";
import { failureOf } from "../http/failures.ts";
import type { UpstreamFailure } from "../provider.ts";

/**
 * The statuses as which exceptions are classified, whatever their own status is. Sources: the errors of each operation in
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/ and
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html.
 */
const statuses: ReadonlyMap<string, number> = new Map(
  (
    [
      [400, "ValidationException"],
      // AWS does not know the key. Its other errors about credentials may go away, such as that of a wrong clock.
      [401, "InvalidClientTokenIdException UnrecognizedClientException"],
      [
        403,
        "AccessDeniedException ExpiredTokenException IncompleteSignatureException InvalidSignatureException " +
          "MissingAuthenticationTokenException NotAuthorizedException OptInRequired SignatureDoesNotMatchException",
      ],
      [404, "ResourceNotFoundException UnknownOperationException"],
      [429, "ModelNotReadyException ThrottlingException TooManyRequestsException"],
      [500, "InternalFailure InternalServerException ModelErrorException ModelStreamErrorException"],
      [503, "ServiceUnavailable ServiceUnavailableException"],
      [504, "ModelTimeoutException RequestTimeoutException"],
    ] as const
  ).flatMap(([status, types]) => types.split(" ").map((type) => [type, status] as const)),
);

/** Requests that are valid, but not for this account, region or id of the model. */
const misconfiguredTexts = [
  /on-demand throughput isn.t supported/i,
  /model identifier is invalid|isn.t supported on this route|does(n.t| not) support counting tokens/i,
  /operation not allowed|access to (this|the) model|is not available for this account|model use case details/i,
];

const filterTexts = /blocked by (our |the |your )?(content filter|guardrail)/i;

/** `com.amazon.coral.service#ThrottlingException:http://...` is a ThrottlingException. */
const nameOf = (value: unknown): string => {
  const [name = ""] = text(value).split(":", 1);
  return name.slice(name.lastIndexOf("#") + 1).slice(0, 64);
};

function failureOfType(
  type: string,
  message: string,
  { status, headers, clock }: { status: number; headers: IncomingHttpHeaders; clock: Clock },
): UpstreamFailure {
  if (type === "ServiceQuotaExceededException")
    return failureOf(status, headers, { message, code: "insufficient_quota" }, clock);
  const given = statuses.get(type) ?? status;
  // The text of a wrong signature goes on with the canonical request, which has the session token.
  const shown = given === 401 || given === 403 ? (/^[^.\n]{0,300}/.exec(message)?.[0] ?? "") : message;
  const isMisconfigured = given === 400 && misconfiguredTexts.some((each) => each.test(message));
  const code = given === 400 && filterTexts.test(message) ? "content_filter" : undefined;
  return failureOf(isMisconfigured ? 404 : given, headers, { message: shown, code }, clock);
}

/** Reads exceptions of AWS, and the errors of OpenAI's and Anthropic's APIs at its addresses. */
export const bedrockFailure: typeof failureOf = (status, headers, body, clock) => {
  const given = object(body);
  const type = nameOf(headers["x-amzn-errortype"] ?? given.__type);
  if (type === "" || isObject(given.error)) return failureOf(status, headers, body, clock);
  return failureOfType(type, text(given.message) || text(given.Message), { status, headers, clock });
};

/** The failure of an exception within an event stream, whose name begins with a small letter. */
export function failureOfException(name: string, payload: string, clock: Clock): UpstreamFailure {
  let body: unknown;
  try {
    body = JSON.parse(payload);
  } catch {
    // The name alone determines the failure.
  }
  const type = nameOf(name);
  const message = text(object(body).message);
  return failureOfType(type.charAt(0).toUpperCase() + type.slice(1), message, { status: 500, headers: {}, clock });
}
