import { ApiError } from "./client.ts";

export interface Sending {
  readonly signal: AbortSignal;
  readonly onSent: (bytes: number) => void;
}

/**
 * Uses XMLHttpRequest, because fetch does not report upload progress. A form has its own type. Rejects with an ApiError, or
 * with an AbortError after a stop.
 */
export function send<T>(
  method: string,
  url: string,
  body: Blob | FormData,
  type: string | undefined,
  { signal, onSent }: Sending,
) {
  return new Promise<T>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    if (type !== undefined) request.setRequestHeader("content-type", type);
    request.upload.onprogress = ({ loaded }) => onSent(loaded);
    request.onerror = () => reject(new ApiError(0, undefined));
    request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
    request.onload = () => {
      const answer: unknown = parsed(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(answer as T);
      else reject(new ApiError(request.status, answer, request.getResponseHeader("x-request-id")));
    };
    signal.addEventListener("abort", () => request.abort(), { once: true });
    if (signal.aborted) reject(new DOMException("The upload was stopped.", "AbortError"));
    else request.send(body);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
