import type { BackgroundResponse, DetachedCalls, JobView } from "#detached-calls";
import { isEnded } from "#detached-calls";
import { noCapacity, ServiceError } from "#errors";
import { responseError } from "#formats";
import { object } from "#json";
import { formatUsd } from "#money";

/** JSON of a response in the background, from the document of its call. */

export type BackgroundView = JobView & { readonly background: BackgroundResponse };
export const isBackground = (view: JobView | undefined): view is BackgroundView => view?.background !== undefined;

export interface EndedResponse {
  /** `completed`, `incomplete`, `failed` or `cancelled`. */
  readonly status: string;
  readonly json: string;
  readonly headers: Readonly<Record<string, string>>;
}

const statuses = { queued: "queued", in_progress: "in_progress", cancelled: "cancelled" } as const;
const statusOf = ({ status }: JobView): string => (status in statuses ? status : "failed");
const failed = () => noCapacity("The call failed.", 1).fields();

/** A response that has not completed, with its output if there is any. */
export function statusText(view: BackgroundView, output?: string): string {
  const { output: none, ...response } = object(JSON.parse(view.background.response));
  const status = statusOf(view);
  const error = status === "failed" ? responseError(new ServiceError(view.error ?? failed())) : null;
  const head = JSON.stringify({ ...response, status, error });
  return `${head.slice(0, -1)},"output":${output ?? JSON.stringify(none)}}`;
}

/** The final response. `reserve` is called before it is read. Undefined if the account has deleted it meanwhile. */
export async function endedResponse(
  { detachedCalls }: { readonly detachedCalls: DetachedCalls },
  account: string,
  view: BackgroundView,
  reserve: (textBytes: number) => void,
): Promise<EndedResponse | undefined> {
  const { requestId } = view;
  if (!isEnded(view)) throw new TypeError("the response has not ended");
  const headers = { "x-xm-cost-usd": formatUsd(view.costNanoUsd) };
  if (view.status !== "completed") {
    const output = await detachedCalls.output(account, requestId, reserve);
    return { status: statusOf(view), json: statusText(view, output), headers };
  }
  const answer = await detachedCalls.answer(account, requestId, reserve);
  if (!answer) return undefined;
  return {
    status: answer.responseStatus ?? "completed",
    json: answer.text,
    headers: { ...answer.headers, ...headers },
  };
}
