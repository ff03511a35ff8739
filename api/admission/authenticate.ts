import type { Request } from "express";
import { insufficientScope } from "#errors";
import type { Format } from "#formats";
import type { Scope } from "#key-records";
import type { Caller, Keys } from "#keys";
import { localsOf } from "../http/headers.ts";

/** Reads `Authorization: Bearer <key>`. The scheme is case-insensitive. */
export function bearer(req: Request): string | undefined {
  return /^bearer +(\S+) *$/i.exec(req.headers.authorization ?? "")?.[1];
}

/** Reads the key where clients of a provider's format send it (docs/api/inference.md, part 5). */
function providerKey(req: Request, format: Format | "any" | undefined): string | undefined {
  if (format === "any") return providerKey(req, "messages") ?? providerKey(req, "gemini");
  if (format === "messages") return req.get("x-api-key") || undefined;
  if (format !== "gemini") return undefined;
  const { key } = req.query;
  return req.get("x-goog-api-key") || (typeof key === "string" && key) || undefined;
}

/** The caller that a dashboard session stands for. The dashboard's router sets it; nothing else does. */
export const sessionCallerOf = ({ res }: Request): Caller | undefined => res && localsOf(res).sessionCaller;

/** `any`: the key may be wherever clients of some format send it. */
export const authenticate = async (keys: Keys, req: Request, format?: Format | "any"): Promise<Caller> =>
  sessionCallerOf(req) ?? keys.authenticate(providerKey(req, format) ?? bearer(req));

/** Throws 403 if the route needs a scope that the key lacks. */
export function requireScope({ scopes }: Caller, scope: Scope | undefined): void {
  if (scope && !scopes.includes(scope)) throw insufficientScope(scope);
}
