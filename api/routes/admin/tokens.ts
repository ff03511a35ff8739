import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Request, Response } from "express";
import { invalidApiKey, ServiceError } from "#errors";
import { addressNetwork, type Keys } from "#keys";
import type { Config } from "#platform/config";
import type { Uses } from "#platform/uses";
import { bearer } from "../../admission/authenticate.ts";
import { addressOf, localsOf } from "../../http/headers.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

export type AdminTokens = NonNullable<ReturnType<typeof createAdminTokens>>;

/** The operators whose tokens are accepted, or undefined if none is configured. */
export function createAdminTokens({ ADMIN_TOKEN, ADMIN_TOKENS }: Pick<Config, "ADMIN_TOKEN" | "ADMIN_TOKENS">) {
  const ofAdmin = (ADMIN_TOKEN?.split(",") ?? []).map((token) => ["admin", token]);
  const named = (ADMIN_TOKENS?.split(",") ?? []).map((each) => each.split(/:(.*)/s));
  const operators = [...ofAdmin, ...named].map(([name = "", token = ""]) => {
    const expected = digest(token);
    /** Derives the value that stands for the token in a session. Without the session's secret it reveals nothing. */
    const seal = (secret: string) => createHmac("sha256", secret).update(expected).digest("base64url");
    return { name, expected, seal };
  });
  if (operators.length === 0) return undefined;
  return {
    /** Compares hashes, which have equal lengths, with every token, so that the time reveals nothing about them. */
    find(token: string) {
      const given = digest(token);
      return operators.filter(({ expected }) => timingSafeEqual(given, expected))[0];
    },
    /** Finds the operator whose token was sealed, if it is still configured. */
    open: (sealed: string, secret: string) => operators.find((operator) => operator.seal(secret) === sealed),
  };
}

const maxAddresses = 10_000;

/**
 * Identifies the operator by the request's bearer token. Throws 401, and 429 for an address with too many wrong tokens,
 * which count as failed sign-ins.
 */
export function identifyByToken(
  deps: Uses<"clock" | "log"> & { tokens: AdminTokens; keys: Pick<Keys, "countSignIn"> },
) {
  const { tokens, keys, clock, log } = deps;
  /** Networks of addresses with too many failures, and until when each is refused. */
  const refused = new Map<string, { error: ServiceError; until: number }>();
  const wrong = () => invalidApiKey("Missing or invalid admin token.");

  async function countFailure(address: string, requestId: string): Promise<void> {
    log.warn({ requestId, address }, "an admin token was refused");
    await keys.countSignIn(address, requestId).catch((error: unknown) => {
      // The wrong token is still refused while Redis is unavailable.
      if (!(error instanceof ServiceError) || error.status !== 429) return;
      if (refused.size >= maxAddresses) refused.clear();
      refused.set(addressNetwork(address), { error, until: clock.now() + (error.retryAfterSeconds ?? 1) * 1_000 });
      throw error;
    });
  }

  return async (req: Request, res: Response): Promise<string> => {
    const address = addressOf(req);
    const network = addressNetwork(address);
    const earlier = refused.get(network);
    if (earlier && clock.now() < earlier.until) throw earlier.error;
    refused.delete(network);
    const token = bearer(req);
    if (token === undefined) throw wrong();
    const operator = tokens.find(token);
    if (operator) return operator.name;
    await countFailure(address, localsOf(res).requestId);
    throw wrong();
  };
}
