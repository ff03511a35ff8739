import type { Response } from "express";
import type { z } from "zod";
import type { Audit } from "#audit";
import { localsOf } from "../../http/headers.ts";
import { parse } from "../../http/input.ts";
import type { Handler } from "../../http/json-routes.ts";

/** Ids in the answer of a change: of what it made or changed, and of the account that has it. */
function targetsIn(answer: unknown): string[] {
  const { id, account } = answer as { id?: unknown; account?: unknown };
  return [id, account].filter((each) => typeof each === "string");
}

/**
 * Makes a handler whose every run is recorded, before and after. A body that is refused changes nothing, and is not recorded;
 * what is recorded has only fields of the schema, none of which is a secret.
 */
export const recordedIn =
  (audit: Pick<Audit, "record">, operatorOf: (res: Response) => string) =>
  (action: string, body: z.ZodType | null, handle: Handler): Handler =>
  (req, res) => {
    if (body) parse(body, req.body);
    const { id } = req.params;
    const intent = {
      who: operatorOf(res),
      action,
      targets: id === undefined ? [] : [id],
      changes: body ? ((req.body as object | undefined) ?? {}) : undefined,
      requestId: localsOf(res).requestId,
    };
    return audit.record(
      intent,
      () => handle(req, res),
      (answer) => ({ status: res.statusCode, targets: targetsIn(answer) }),
    );
  };
