import createClient from "openapi-fetch";
import { createStore } from "../lib/store.ts";
import type { paths } from "./schema.d.ts";

/** Requests to the service, which identifies the user by the session cookie. Types come from its OpenAPI document. */
export const base = "/dashboard/api";
export const client = createClient<paths>({ baseUrl: base, credentials: "same-origin" });

/** An error of the service in its common shape, or a lost connection. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly requestId: string | undefined;

  constructor(status: number, body: unknown, requestId?: string | null) {
    const { error, request_id } = (body ?? {}) as { error?: Record<string, string | null>; request_id?: string };
    super(error?.["message"] ?? (status === 0 ? "The service cannot be reached." : `The service answered ${status}.`));
    this.name = "ApiError";
    this.status = status;
    this.code = error?.["code"] ?? undefined;
    this.param = error?.["param"] ?? undefined;
    this.requestId = request_id ?? requestId ?? undefined;
  }
}

/** The error of a response that is not 2xx. */
export const errorOf = async (response: Response): Promise<ApiError> =>
  new ApiError(response.status, await response.json().catch(() => undefined), response.headers.get("x-request-id"));

/** True while the last request failed to reach the service. */
export const connectionLost = createStore(false);

/** Throws an ApiError for a request that could not be sent; rethrows an abort unchanged. */
export function unreachable(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  connectionLost.set(true);
  throw new ApiError(0, undefined);
}

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** Returns the body of a successful response. Throws an ApiError. */
export async function unwrap<T>(asked: Promise<Answer<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await asked.catch(unreachable);
  if (!response.ok || data === undefined || data === null)
    throw new ApiError(response.status, error, response.headers.get("x-request-id"));
  return data;
}

type Defined<T> = { [name in keyof T]: Exclude<T[name], undefined | ""> };

/** Omits members that are not set. */
export const defined = <T extends object>(query: T): Partial<Defined<T>> =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined && value !== "")) as Partial<
    Defined<T>
  >;

/** Sends a request to a path outside the public document: the session's, or the dashboard's own. */
export async function request<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(path, { credentials: "same-origin", ...init }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

export const postJson = <T>(path: string, body: object): Promise<T> =>
  request<T>(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
