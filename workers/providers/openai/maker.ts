import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer } from "#platform/http";
import type { Logger } from "#platform/logger";
import { writeJson } from "../json.ts";
import { broken, refusal } from "./answers.ts";
import type { Form } from "./form.ts";

export interface OpenaiTarget {
  /** With its path: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Sent as the bearer, if the upstream takes one. */
  readonly apiKey: string | undefined;
  /** Calls in flight at most. */
  readonly concurrency: number;
  /** It keeps chat answers unless it is told not to. */
  readonly storesAnswers: boolean;
}

/** The server that an upstream's address leads to. */
export interface Maker {
  /** Rejects unless the answer is a success. */
  send(ask: Ask, call: { readonly signal: AbortSignal; readonly log: Logger }): Promise<HttpAnswer>;
  readonly origin: string;
  readonly clock: Clock;
  close(): Promise<void>;
}

interface Ask {
  /** POST with a body, else GET, unless said otherwise. */
  readonly method?: "DELETE";
  /** Below the base address. */
  readonly path: string;
  readonly json?: object;
  readonly form?: Form;
  readonly accept?: string;
}

export function connectMaker(target: OpenaiTarget, clock: Clock): Maker {
  const base = new URL(target.baseUrl);
  const root = base.pathname.replace(/\/+$/, "");
  const http = createHttpClient({ origin: base.origin, connections: target.concurrency, clock });
  const common = {
    "accept-encoding": "identity",
    "user-agent": "inference-service",
    ...(target.apiKey !== undefined && { authorization: `Bearer ${target.apiKey}` }),
  };

  return {
    async send({ method, path, json, form, accept = "application/json" }, { signal, log }) {
      const body = json ? writeJson(json) : form?.parts;
      const answer = await http
        .send({
          method: method ?? (body ? "POST" : "GET"),
          path: `${root}${path}${base.search}`,
          headers: { ...common, accept, ...(json ? { "content-type": "application/json" } : form?.headers) },
          ...(body && { body }),
          signal,
        })
        .catch((error: unknown) => broken(error, signal));
      log.debug({ status: answer.status, upstreamRequestId: answer.headers["x-request-id"] }, "upstream answered");
      if (answer.status < 200 || answer.status > 299) throw await refusal(answer, signal, clock);
      return answer;
    },
    origin: base.origin,
    clock,
    close: () => http.close(),
  };
}
