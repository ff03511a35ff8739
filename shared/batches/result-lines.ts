import { ServiceError } from "#errors";
import { formatUsd } from "#money";
import type { BatchKind, LineOutcome, StoredLine } from "./collections.ts";
import { batchEndpoint } from "./endpoints.ts";
import type { EndedLine } from "./lines.ts";

/** A line of the output file or of the error file, and its outcome. */
export interface ResultLine {
  readonly outcome: LineOutcome;
  readonly text: string;
}

const idOf = ({ batch, line }: Pick<StoredLine, "batch" | "line">) => batch.replace(/^\w+_/, "batch_req_") + `_${line}`;
const unanswered = {
  expired: { code: "batch_expired", message: "The batch expired before this request began." },
  cancelled: { code: "batch_cancelled", message: "The batch was cancelled before this request began." },
} as const;

/** The result of a line that has ended, in the shape of the batch's kind. */
export function resultOf(kind: BatchKind, endpoint: string, line: EndedLine): ResultLine {
  const { customId, requestId, answer, text, error } = line;
  const custom_id = JSON.stringify(customId);
  const outcome: LineOutcome = answer ? "succeeded" : "failed";
  const failure = error && new ServiceError(error);
  const body = text ?? (failure ? batchEndpoint(endpoint).codec.error(failure, requestId) : "null");
  if (kind === "anthropic") {
    const result = answer ? `{"type":"succeeded","message":${body}}` : `{"type":"errored","error":${body}}`;
    return { outcome, text: `{"custom_id":${custom_id},"result":${result}}\n` };
  }
  const status = failure?.status ?? 200;
  const cost = formatUsd(answer?.costNanoUsd ?? 0n);
  const response = `{"status_code":${status},"request_id":"${requestId}","x_cost_usd":"${cost}","body":${body.trimEnd()}}`;
  return { outcome, text: `{"id":"${idOf(line)}","custom_id":${custom_id},"response":${response},"error":null}\n` };
}

/** The result of a line that was not run. */
export function resultOfUnrun(
  kind: BatchKind,
  outcome: "expired" | "cancelled",
  line: Pick<StoredLine, "batch" | "line" | "customId">,
): ResultLine {
  const custom_id = JSON.stringify(line.customId);
  if (kind === "anthropic") {
    const type = outcome === "cancelled" ? "canceled" : outcome;
    return { outcome, text: `{"custom_id":${custom_id},"result":{"type":"${type}"}}\n` };
  }
  const error = JSON.stringify(unanswered[outcome]);
  return { outcome, text: `{"id":"${idOf(line)}","custom_id":${custom_id},"response":null,"error":${error}}\n` };
}
