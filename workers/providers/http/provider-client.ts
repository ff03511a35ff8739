import type { JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import { createHttpClient, type HttpAnswer, NotConnected } from "#platform/http";
import { type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { failureOf } from "./failures.ts";
import { errorLimitBytes, readBody, readText, throwFailure } from "./read-answer.ts";
import { createSafeFetch } from "./safe-fetch.ts";
import { parseLargeAnswer, writeRequest } from "./untrusted-json.ts";

export interface ProviderRequest {
  /** Defaults to POST with a body, else to GET. */
  readonly method?: "DELETE" | "POST" | "PUT";
  /** The path below the base address, including the query. */
  readonly path: string;
  readonly json?: object;
  readonly form?: { readonly headers: Readonly<Record<string, string>>; readonly parts: readonly Buffer[] };
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer is a stream of events: those that arrive within a moment are read together. */
  readonly isStream?: boolean;
}

/** A request as it is sent, but for the headers that authenticate it. */
export interface SignableRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for a form. */
  readonly body: Buffer | undefined;
}

interface ProviderEndpoint {
  /** The address, with or without a path. The operator sets it, so it may be private. */
  readonly baseUrl: string;
  readonly concurrency: number;
  /** Headers of every request: the key, and whatever the provider requires. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers that authenticate a request, if they depend on it or on the time. Fails with `UpstreamFailure`. */
  readonly authorize?: (request: SignableRequest, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  /** Changes a request for a cloud that serves a vendor's requests at its own addresses or in its own bodies. */
  readonly adapt?: (request: ProviderRequest) => ProviderRequest;
  /** Reads the provider's errors, if their shape is specific to the provider. */
  readonly failureOf?: typeof failureOf;
}

type CallContext = Pick<UpstreamCall, "signal" | "log" | "span"> & Partial<Pick<UpstreamCall, "reserveMemory">>;

const answerLimitBytes = 64 * 1024 * 1024;

/** Writes and encodes a large request in separate turns of the event loop. */
async function bytesOf(json: object): Promise<Buffer> {
  const text = writeRequest(json);
  await nextTurnIfLarge(text.length);
  const bytes = Buffer.from(text);
  await nextTurnIfLarge(bytes.length);
  return bytes;
}

export type ProviderClient = ReturnType<typeof connectProvider>;

export function connectProvider(endpoint: ProviderEndpoint, clock: Clock) {
  const base = new URL(endpoint.baseUrl);
  const root = base.pathname.replace(/(?<!\/)\/+$/, "");
  const http = createHttpClient({ origin: base.origin, connections: endpoint.concurrency, clock });
  const safeFetch = createSafeFetch({ clock, trusted: base.origin });
  const common = { "accept-encoding": "identity", "user-agent": "inference-service", ...endpoint.headers };
  // Some proxies need a query in the base address.
  const withQuery = (path: string) =>
    base.search === "" || !path.includes("?") ? path + base.search : `${path}&${base.search.slice(1)}`;

  /** If the body is unreadable, the status alone determines the failure. */
  const failureFrom = async (answer: HttpAnswer, signal: AbortSignal): Promise<UpstreamFailure> => {
    let body: unknown;
    try {
      body = JSON.parse(await readText(answer, errorLimitBytes, signal));
    } catch {
      signal.throwIfAborted();
    }
    return (endpoint.failureOf ?? failureOf)(answer.status, answer.headers, body, clock);
  };

  /** Rejects unless the status is a success. */
  const send = async (request: ProviderRequest, { signal, log, span: parent }: CallContext): Promise<HttpAnswer> => {
    const adapted = endpoint.adapt?.(request) ?? request;
    const { method, path, json, form, accept = "application/json", headers, isStream = false } = adapted;
    // Bytes, because text takes up to twice the memory and would be held until the answer arrives.
    const body = json ? await bytesOf(json) : form?.parts;
    const contentHeaders = json ? { "content-type": "application/json" } : form?.headers;
    const verb = method ?? (body ? "POST" : "GET");
    const target = root + withQuery(path);
    const unsigned = { ...common, accept, ...headers, ...contentHeaders };
    const authorization = await endpoint.authorize?.(
      {
        method: verb,
        url: new URL(base.origin + target),
        headers: unsigned,
        body: body instanceof Buffer ? body : undefined,
      },
      signal,
    );
    // The span omits the query, which may hold a key.
    const span = parent?.child(verb, {
      kind: "client",
      attributes: {
        "http.request.method": verb,
        "server.address": base.hostname,
        "server.port": Number(base.port) || (base.protocol === "https:" ? 443 : 80),
        "url.full": `${base.origin}${root}${path.split("?", 1)[0]}`,
      },
    });
    const answer = await http
      .send({
        method: verb,
        path: target,
        headers: { ...unsigned, ...authorization },
        ...(body && { body }),
        signal,
        isGathered: isStream,
      })
      .catch((error: unknown) => {
        span?.fail(error instanceof NotConnected ? (error.code ?? "not connected") : "no answer");
        span?.end();
        if (!(error instanceof NotConnected)) return throwFailure(error, signal);
        const { code, message, cause } = error;
        throw new UpstreamFailure("unavailable", code ?? message, { unreachable: true, cause });
      });
    const upstreamRequestId =
      answer.headers["x-request-id"] ?? answer.headers["request-id"] ?? answer.headers["x-amzn-requestid"];
    // The span ends at the head of the answer; reading the body belongs to the attempt.
    span?.set({ "http.response.status_code": answer.status });
    if (answer.status > 399) span?.fail(String(answer.status));
    span?.end();
    log.debug({ status: answer.status, upstreamRequestId }, "upstream answered");
    if (answer.status < 200 || answer.status > 299) throw await failureFrom(answer, signal);
    return answer;
  };

  return {
    send,
    /** Like `send`, for an answer that is a JSON object. */
    sendForJson: async (
      request: ProviderRequest,
      call: CallContext,
      { limitBytes = answerLimitBytes, maxValues }: { limitBytes?: number; maxValues?: number } = {},
    ): Promise<JsonObject> => parseLargeAnswer(await readBody(await send(request, call), limitBytes, call), maxValues),
    /** Like `send`, for a request whose status is its answer. */
    probe: async (path: string, call: CallContext): Promise<void> => {
      const { body } = await send({ path }, call);
      await body.return?.();
    },
    /** Downloads the file at an address that an answer names. The key is not sent there. */
    download: (url: string, limitBytes: number, signal: AbortSignal): Promise<HttpAnswer> =>
      safeFetch.get({ url, limitBytes, signal }).catch((error: unknown) => throwFailure(error, signal)),
    clock,
    async close() {
      await Promise.all([http.close(), safeFetch.close()]);
    },
  };
}

/**
 * The address with the version's path, which the operator may have omitted: providers' own clients expect the address
 * without it.
 */
export function versioned(baseUrl: string, version: string): string {
  const url = new URL(baseUrl);
  const path = url.pathname.replace(/(?<!\/)\/+$/, "");
  url.pathname = path.endsWith(`/${version}`) ? path : `${path}/${version}`;
  return url.href;
}
