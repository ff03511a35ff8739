import { createHash, timingSafeEqual } from "node:crypto";
import type { Request } from "express";
import { invalidApiKey } from "#errors";
import type { Config } from "#platform/config";
import { bearer } from "../../admission/authenticate.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

type AdminTokens = Readonly<{
  /** The operator's name, or undefined. */
  nameOf: (token: string) => string | undefined;
}>;

/** Whose tokens are accepted; undefined if none is configured. */
export function createAdminTokens({
  ADMIN_TOKEN,
  ADMIN_TOKENS,
}: Pick<Config, "ADMIN_TOKEN" | "ADMIN_TOKENS">): AdminTokens | undefined {
  const ofAdmin = (ADMIN_TOKEN?.split(",") ?? []).map((token) => ["admin", token]);
  const named = (ADMIN_TOKENS?.split(",") ?? []).map((each) => each.split(/:(.*)/s));
  const operators = [...ofAdmin, ...named].map(([name = "", token = ""]) => ({ name, expected: digest(token) }));
  if (operators.length === 0) return undefined;
  return {
    /** Compares hashes, which have equal lengths, with every token, so that the time reveals nothing about them. */
    nameOf(token) {
      const given = digest(token);
      return operators.filter(({ expected }) => timingSafeEqual(given, expected))[0]?.name;
    },
  };
}

/** Who calls, by the bearer token of the request. Throws 401. */
export const identifyByToken = (tokens: AdminTokens) => (req: Request) => {
  const name = tokens.nameOf(bearer(req) ?? "");
  if (name === undefined) throw invalidApiKey("Missing or invalid admin token.");
  return name;
};
