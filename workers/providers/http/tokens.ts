/**
 * Access tokens with which clouds authenticate requests: `createTokens` keeps the token of one credential and one scope,
 * `connectTokenEndpoint` asks an OAuth server for it (https://www.rfc-editor.org/rfc/rfc6749#section-5). Failures are
 * `UpstreamFailure`s, whose text contains neither credential nor token.
 */
import * as oauth from "oauth4webapi";
import { type JsonObject, object, text } from "#json";
import type { Clock } from "#platform/clock";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import { createHttpClient, type HttpAnswer, NotConnected } from "#platform/http";
import { UpstreamFailure } from "../provider.ts";
import { failureOf } from "./failures.ts";
import { errorLimitBytes, readText, throwFailure } from "./read-answer.ts";

export interface AccessToken {
  readonly value: string;
  readonly lifetimeMs: number;
}

const refreshMs = 5 * 60_000;
/** A refresh that failed is repeated after this time, while the earlier token is still valid. */
const repeatMs = 30_000;
const fetchTimeoutMs = 10_000;
/** A token that is refused although it is younger is not at fault itself, so another one would be refused too. */
const youngMs = 60_000;

/**
 * The access token of one credential. It is fetched when it is first needed, by one request for all calls that wait, and
 * again five minutes before it expires, while calls use the earlier one. A failure rejects the calls that wait for it and
 * is not remembered.
 */
export function createTokens(fetchToken: (signal: AbortSignal) => Promise<AccessToken>, clock: Clock) {
  let current: { readonly value: string; readonly fetchedAt: number; refreshAt: number; expiresAt: number } | undefined;
  let pending: Promise<string> | undefined;

  async function fetchOnce(): Promise<string> {
    const limit = new AbortController();
    const reason = new UpstreamFailure("timeout", `no access token within ${fetchTimeoutMs} ms`);
    const cancel = clock.after(fetchTimeoutMs, () => limit.abort(reason));
    const fetchedAt = clock.now();
    try {
      const { value, lifetimeMs } = await unlessAborted(limit.signal, () => fetchToken(limit.signal));
      // The header must not be split by a hostile token.
      if (!/^[\x21-\x7e]+$/.test(value)) throw new UpstreamFailure("unavailable", "a malformed access token");
      const expiresAt = fetchedAt + lifetimeMs;
      current = { value, fetchedAt, refreshAt: expiresAt - Math.min(refreshMs, lifetimeMs / 2), expiresAt };
      return value;
    } finally {
      cancel();
      pending = undefined;
    }
  }

  const refresh = (): Promise<string> => {
    pending ??= fetchOnce();
    return pending;
  };

  return {
    async get(signal: AbortSignal): Promise<string> {
      const now = clock.now();
      if (current === undefined || now >= current.expiresAt) return unlessAborted(signal, refresh);
      if (now >= current.refreshAt) {
        current.refreshAt = now + repeatMs;
        refresh().catch(() => {});
      }
      return current.value;
    },
    /**
     * Reads the failure of a request with the token. If the cloud refuses an old token, that one is forgotten, and the
     * credential is not to blame. A young one stays, so that refusals cause few requests.
     */
    failureOf: (...answer: Parameters<typeof failureOf>): UpstreamFailure => {
      const [status] = answer;
      if (status !== 401 || !current || clock.now() - current.fetchedAt < youngMs) return failureOf(...answer);
      current = undefined;
      return new UpstreamFailure("unavailable", "status 401: the access token was refused", { status });
    },
  };
}

/** A request for a token. */
export interface Grant {
  readonly type: "client_credentials" | `urn:ietf:params:oauth:grant-type:${"jwt-bearer" | "token-exchange"}`;
  readonly clientId: string;
  /** Omitted if the fields authenticate the client. */
  readonly authentication?: oauth.ClientAuth;
  readonly fields: Readonly<Record<string, string>>;
}

/** Applies to an answer without a lifetime. */
const defaultLifetimeSeconds = 300;
const secretFields = ["client_secret", "client_assertion", "assertion", "subject_token"];

/** The OAuth server with this token endpoint. The operator chooses it, so it may be private. */
export function connectTokenEndpoint(url: string, clock: Clock) {
  const { origin, pathname, search, host } = new URL(url);
  const http = createHttpClient({ origin, connections: 1, clock });

  // The library reads a whole body, so it gets one of limited size.
  async function send(form: URLSearchParams, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const body = form.toString();
    const request = { method: "POST" as const, path: pathname + search, headers, body, signal };
    const answer = await http.send(request).catch((error: unknown) => {
      if (!(error instanceof NotConnected)) return throwFailure(error, signal);
      const { code, message } = error;
      throw new UpstreamFailure("unavailable", `${host}: ${code ?? message}`, { unreachable: true });
    });
    const answered = await readText(answer, errorLimitBytes, signal);
    if (answer.status !== 200) throw refusedGrant(answer, answered, form);
    return new Response(answered, { headers: { "content-type": answer.headers["content-type"] ?? "" } });
  }

  function refusedGrant({ status, headers }: HttpAnswer, body: string, form: URLSearchParams): UpstreamFailure {
    const { error, error_description: description } = parsed(body);
    const { kind, retryAfterMs } = failureOf(status, headers, undefined, clock);
    let reason = [text(error), text(description).split("Trace ID:", 1)[0]?.trim()].filter(Boolean).join(": ");
    for (const field of secretFields) reason = reason.replaceAll(form.get(field) || "...", "...");
    const message = `${host} gave no access token: status ${status}${reason && `, ${reason.slice(0, 400)}`}`;
    return new UpstreamFailure(kind === "refused" ? "misconfigured" : kind, message, { status, retryAfterMs });
  }

  return {
    async request({ type, clientId, authentication, fields }: Grant, signal: AbortSignal): Promise<AccessToken> {
      const server = { issuer: origin, token_endpoint: url };
      const client = { client_id: clientId };
      try {
        const response = await oauth.genericTokenEndpointRequest(
          server,
          client,
          authentication ?? (() => {}),
          type,
          { ...fields },
          {
            signal,
            [oauth.customFetch]: (_, request) => send(request.body, request.headers, signal),
            // The operator may name a proxy in the own network.
            [oauth.allowInsecureRequests]: true,
          },
        );
        const answer = await oauth.processGenericTokenEndpointResponse(server, client, response);
        return {
          value: answer.access_token,
          lifetimeMs: (answer.expires_in ?? defaultLifetimeSeconds) * 1_000,
        };
      } catch (error) {
        signal.throwIfAborted();
        // The library's own errors hold the answer, and so perhaps a token.
        throw error instanceof UpstreamFailure
          ? error
          : new UpstreamFailure("unavailable", `${host} answered without an access token`);
      }
    },
    /** Aborts all requests. */
    close: () => http.close(),
  };
}

function parsed(body: string): JsonObject {
  try {
    return object(JSON.parse(body));
  } catch {
    return {};
  }
}
