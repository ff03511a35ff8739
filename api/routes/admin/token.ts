import { createHash, timingSafeEqual } from "node:crypto";
import type { RequestHandler } from "express";
import { invalidApiKey } from "#errors";
import { bearer } from "../../admission/authenticate.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** Hashes are of one length, so comparing them tells nothing about the token, not even how long it is. */
export function requireToken(token: string): RequestHandler {
  const expected = digest(token);
  return (req, res, next) => {
    if (!timingSafeEqual(digest(bearer(req) ?? ""), expected)) throw invalidApiKey("Missing or invalid admin token.");
    // Answers hold secrets and balances.
    res.set("cache-control", "no-store");
    next();
  };
}
