import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Environment, withSecretFiles } from "#platform/process/secret-files";
import type { Item } from "./admin-print.ts";

export interface Target {
  readonly url: string;
  readonly token: string;
}

/** An error that is shown to the user without a stack trace. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** The response's status. Undefined when there was no response. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/** Returns the given target, or that of `npm start`, whose token is never sent to a given address. */
export function findTarget(given: { url?: string | undefined; token?: string | undefined }, env: Environment): Target {
  const url = given.url ?? (env.ADMIN_URL || undefined);
  const token = given.token ?? (withSecretFiles(env, ["ADMIN_TOKEN"])["ADMIN_TOKEN"]?.split(",")[0] || undefined);
  if (url !== undefined && token === undefined)
    throw new CommandError(`${url} requires an admin token: use --token, ADMIN_TOKEN or ADMIN_TOKEN_FILE.`);
  const demo = url !== undefined && token !== undefined ? undefined : readDemo(env.DATA_DIR || ".data");
  const target = { url: url ?? demo?.baseUrl, token: token ?? demo?.adminToken };
  if (target.url === undefined || target.token === undefined)
    throw new CommandError(
      "No service is selected. Start one here with `npm start`, or use --url and --token, or ADMIN_URL and ADMIN_TOKEN.",
    );
  if (!/^https?:\/\//.test(target.url)) throw new CommandError(`${target.url} is not an http or https address.`);
  return { url: target.url.replace(/(?<!\/)\/+$/, ""), token: target.token };
}

/** Written by infra/cli/demo.ts. */
function readDemo(dataDir: string): { baseUrl?: string; adminToken?: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8")) as { baseUrl?: string; adminToken?: string };
  } catch {
    return undefined;
  }
}

export type AdminClient = ReturnType<typeof createAdminClient>;

/**
 * Client of the admin API. The input becomes the query of GET and DELETE requests, and the body of others; undefined
 * fields are not sent. Throws CommandError with the service's own message.
 */
export function createAdminClient({ url, token }: Target, timeoutMs = 30_000) {
  return async (method: "GET" | "POST" | "PATCH" | "DELETE", path: string, input: object = {}): Promise<Item> => {
    const hasBody = method === "POST" || method === "PATCH";
    const given = Object.entries(input).filter(([, value]) => value !== undefined);
    const query = hasBody ? "" : new URLSearchParams(Object.fromEntries(given)).toString();
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(`${url}/admin/v1${path}${query && `?${query}`}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(hasBody && { body: JSON.stringify(input) }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      answer = await response.json().catch(undefinedIfNotJson);
    } catch (error) {
      throw new CommandError(
        `${url} does not answer (${reasonOf(error)}). Start the service with \`npm start\`, or set its address with --url or ADMIN_URL.`,
      );
    }
    if (response.ok && answer !== undefined) return answer as Item;
    const { error, request_id } = (answer ?? {}) as {
      error?: { message?: string; code?: string };
      request_id?: string;
    };
    if (!error?.message)
      throw new CommandError(
        `${url} responded with ${response.status}, but not in this service's format.`,
        response.status,
      );
    const hint = error.code === "unknown_url" ? " Is ADMIN_TOKEN set where the API runs?" : "";
    const details = [response.status, error.code, request_id].filter(Boolean).join(", ");
    throw new CommandError(`${error.message}${hint} (${details})`, response.status);
  };
}

function undefinedIfNotJson(error: unknown): undefined {
  if (!(error instanceof SyntaxError)) throw error;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error) return "code" in cause ? String(cause.code) : cause.message;
  return String(cause);
}
