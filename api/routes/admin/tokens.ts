import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Request } from "express";
import { invalidApiKey } from "#errors";
import type { Config } from "#platform/config";
import { bearer } from "../../admission/authenticate.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** One whose token is configured. */
export interface Operator {
  readonly name: string;
  /** What stands for the token in a session, and tells nothing about it without the session's secret. */
  readonly seal: (secret: string) => string;
}

export interface AdminTokens {
  find(token: string): Operator | undefined;
  /** The operator whose token was sealed, while it is configured. */
  open(sealed: string, secret: string): Operator | undefined;
}

/** Whose tokens are accepted; undefined if none is configured. */
export function createAdminTokens({
  ADMIN_TOKEN,
  ADMIN_TOKENS,
}: Pick<Config, "ADMIN_TOKEN" | "ADMIN_TOKENS">): AdminTokens | undefined {
  const ofAdmin = (ADMIN_TOKEN?.split(",") ?? []).map((token) => ["admin", token]);
  const named = (ADMIN_TOKENS?.split(",") ?? []).map((each) => each.split(/:(.*)/s));
  const operators = [...ofAdmin, ...named].map(([name = "", token = ""]) => {
    const expected = digest(token);
    const seal = (secret: string) => createHmac("sha256", secret).update(expected).digest("base64url");
    return { name, expected, seal };
  });
  if (operators.length === 0) return undefined;
  return {
    /** Compares hashes, which have equal lengths, with every token, so that the time reveals nothing about them. */
    find(token) {
      const given = digest(token);
      return operators.filter(({ expected }) => timingSafeEqual(given, expected))[0];
    },
    open: (sealed, secret) => operators.find((operator) => operator.seal(secret) === sealed),
  };
}

/** Who calls, by the bearer token of the request. Throws 401. */
export const identifyByToken = (tokens: AdminTokens) => (req: Request) => {
  const operator = tokens.find(bearer(req) ?? "");
  if (!operator) throw invalidApiKey("Missing or invalid admin token.");
  return operator.name;
};
