import type { Request } from "express";
import { z } from "zod";
import { invalidValue } from "#errors";
import type { ParsedCall } from "#formats";
import { type PromptCache, promptCaches } from "#key-records";

const header = "x-xm-prompt-cache";
const setting = z.enum(promptCaches).optional();

export const cacheMarksHeader = {
  [header]: setting.describe(
    "`auto` adds cache marks to a call to a model that needs them; overrides the key's `prompt_cache`",
  ),
};

/**
 * Decides that workers may add cache marks to a text call: the caller wants it, by the header or the setting of the key, and
 * has set no marks of its own. The hold then covers cache writes. Throws 400 for another value of the header.
 */
export function withCacheMarks(req: Request, call: ParsedCall, ofKey: PromptCache): ParsedCall {
  const given = setting.safeParse(req.get(header));
  if (!given.success) throw invalidValue(header, `${header} must be ${promptCaches.join(" or ")}.`);
  const wanted = given.data ?? ofKey;
  if (wanted !== "auto" || !call.conversation || call.size.cacheWrites) return call;
  return { ...call, cacheMarks: "auto", size: { ...call.size, cacheWrites: "short" } };
}
