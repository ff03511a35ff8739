import type { Request } from "express";
import type { Format } from "#formats";
import type { Caller, Keys } from "#keys";
import { localsOf } from "../http/headers.ts";

/** `Authorization: Bearer <key>`, the scheme in any case. */
export function bearer(req: Request): string | undefined {
  return /^bearer +(\S+) *$/i.exec(req.headers.authorization ?? "")?.[1];
}

/** Where the clients of a provider's format put their key: docs/api/inference.md, part 5. */
function providerKey(req: Request, format: Format | undefined): string | undefined {
  if (format === "messages") return req.get("x-api-key") || undefined;
  if (format !== "gemini") return undefined;
  const { key } = req.query;
  return req.get("x-goog-api-key") || (typeof key === "string" && key) || undefined;
}

/** Whom the session of a request under the dashboard stands for. Nothing outside of it sets one. */
export const sessionCallerOf = ({ res }: Request): Caller | undefined => res && localsOf(res).sessionCaller;

export const authenticate = async (keys: Keys, req: Request, format?: Format): Promise<Caller> =>
  sessionCallerOf(req) ?? keys.authenticate(providerKey(req, format) ?? bearer(req));
