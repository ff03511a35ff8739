import type { Request } from "express";
import type { Caller, Keys } from "#keys";

/** `Authorization: Bearer <key>`, the scheme in any case. */
export function bearer(req: Request): string | undefined {
  return /^bearer +(\S+) *$/i.exec(req.headers.authorization ?? "")?.[1];
}

export const authenticate = (keys: Keys, req: Request): Promise<Caller> => keys.authenticate(bearer(req));
