import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer, NotConnected } from "#platform/http";
import type { Logger } from "#platform/logger";
import { UpstreamFailure } from "../provider.ts";
import { broken, refusal } from "./answers.ts";
import type { failureOf } from "./failures.ts";
import { writeJson } from "./json.ts";

/** The server that an upstream's address leads to. */
export interface ProviderClient {
  /** Rejects unless the answer is a success. */
  send(ask: Ask, call: { readonly signal: AbortSignal; readonly log: Logger }): Promise<HttpAnswer>;
  readonly origin: string;
  readonly clock: Clock;
  close(): Promise<void>;
}

interface Ask {
  /** POST with a body, else GET, unless said otherwise. */
  readonly method?: "DELETE" | "POST" | "PUT";
  /** Below the base address; its query, if it has one, with it. */
  readonly path: string;
  readonly json?: object;
  readonly form?: { readonly headers: Readonly<Record<string, string>>; readonly parts: readonly Buffer[] };
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ProviderEndpoint {
  /** With or without a path. What an operator set is trusted. */
  readonly baseUrl: string;
  /** Calls in flight at most. */
  readonly concurrency: number;
  /** Sent with every request: the key, and what the provider insists on. */
  readonly headers: Readonly<Record<string, string>>;
  /** What its errors mean, where they have a shape of their own. */
  readonly failureOf?: typeof failureOf;
}

export function connectProvider(
  { baseUrl, concurrency, headers, failureOf }: ProviderEndpoint,
  clock: Clock,
): ProviderClient {
  const base = new URL(baseUrl);
  const root = base.pathname.replace(/\/+$/, "");
  const http = createHttpClient({ origin: base.origin, connections: concurrency, clock });
  const common = { "accept-encoding": "identity", "user-agent": "inference-service", ...headers };
  // An address may have a query of its own, as some proxies want it.
  const withQuery = (path: string) =>
    base.search === "" || !path.includes("?") ? path + base.search : `${path}&${base.search.slice(1)}`;

  return {
    async send({ method, path, json, form, accept = "application/json", headers: own }, { signal, log }) {
      // As bytes: the text, which may take twice as much, is not held until the answer comes.
      const body = json ? Buffer.from(writeJson(json)) : form?.parts;
      const answer = await http
        .send({
          method: method ?? (body ? "POST" : "GET"),
          path: root + withQuery(path),
          headers: { ...common, accept, ...own, ...(json ? { "content-type": "application/json" } : form?.headers) },
          ...(body && { body }),
          signal,
        })
        .catch((error: unknown) => {
          if (!(error instanceof NotConnected)) return broken(error, signal);
          const { code, message, cause } = error;
          throw new UpstreamFailure("unavailable", code ?? message, { unreachable: true, cause });
        });
      const upstreamRequestId = answer.headers["x-request-id"] ?? answer.headers["request-id"];
      log.debug({ status: answer.status, upstreamRequestId }, "upstream answered");
      if (answer.status < 200 || answer.status > 299) throw await refusal(answer, signal, clock, failureOf);
      return answer;
    },
    origin: base.origin,
    clock,
    close: () => http.close(),
  };
}

/** The address with the version's path, whichever way the operator gave it: providers' own clients take it without. */
export function versioned(baseUrl: string, version: string): string {
  const url = new URL(baseUrl);
  const path = url.pathname.replace(/\/+$/, "");
  url.pathname = path.endsWith(`/${version}`) ? path : `${path}/${version}`;
  return url.href;
}
