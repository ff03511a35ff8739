import { request } from "undici";
import type { MockAnthropic } from "../support/mock-anthropic.ts";
import type { MockGemini } from "../support/mock-gemini.ts";
import type { MockOpenai } from "../support/mock-openai.ts";
import type { MockReplicate } from "../support/mock-replicate.ts";
import type { MockRerank } from "../support/mock-rerank.ts";

/** A service and its providers. */
export interface Target {
  readonly url: string;
  readonly key: string;
  readonly openai: MockOpenai;
  readonly anthropic: MockAnthropic;
  readonly gemini: MockGemini;
  readonly replicate: MockReplicate;
  readonly cohere: MockRerank;
}

export interface HostileInput {
  readonly kind: "json" | "headers" | "pipelined" | "media" | "schemas" | "answers";
  readonly name: string;
  /** Part of `npm test` as well. */
  readonly isShort?: boolean;
  /** Builds the request once. The returned function sends it, and resolves with the status of the response. */
  readonly prepare: (target: Target) => Send | Promise<Send>;
}

export type Send = () => Promise<number>;

interface Sent {
  readonly method?: "GET" | "POST" | "OPTIONS";
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>> | readonly string[];
}

/** Sends a request with the target's key, and reads the whole response. */
export async function send({ url, key }: Target, path: string, { method = "POST", body, headers }: Sent) {
  const own = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await request(url + path, {
    method,
    body: body ?? null,
    headers: Array.isArray(headers) ? [...headers] : { ...own, ...(headers as Record<string, string>) },
    headersTimeout: 120_000,
    bodyTimeout: 120_000,
  });
  const parts: Buffer[] = [];
  for await (const part of answer.body) parts.push(part as Buffer);

  return { status: answer.statusCode, text: Buffer.concat(parts).toString() };
}

/** A request whose body is built once. */
export const posting =
  (path: string, makeBody: () => string | Buffer, headers?: Readonly<Record<string, string>>) =>
  (target: Target): Send => {
    const body = makeBody();
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    return async () => (await send(target, path, { body: bytes, ...(headers && { headers }) })).status;
  };

export const mebi = 1024 * 1024;
export const openaiModel = "openai/gpt-4.1-mini";
export const anthropicModel = "anthropic/claude-sonnet-5";
export const geminiModel = "google/gemini-3.6-flash";
export const localModel = "local/chat";
export const replicateModel = "black-forest-labs/flux-1-dev";

export const many = <T>(count: number, itemOf: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => itemOf(index));
