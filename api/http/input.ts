import { isAddress } from "@solana/kit";
import { z } from "zod";
import { invalidFrom } from "#formats";
import { parseUsd } from "#money";

/** Parses a value, or throws a 400 that names the field. */
export function parse<T extends z.ZodType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw invalidFrom(parsed.error);
  return parsed.data;
}

export const name = z.string().trim().min(1).max(200);

const notUsd = 'expected USD other than 0 with at most 9 decimals, like "25.00"';

/** Strings only: a JSON number would lose digits. */
export const usdText = z.string().regex(/^(?=.*[1-9])-?\d{1,10}(\.\d{1,9})?$/, notUsd);

export const usd = usdText.transform((text, context) => {
  const nanoUsd = parseUsd(text);
  if (nanoUsd !== undefined) return nanoUsd;
  context.addIssue({ code: "custom", message: notUsd });
  return z.NEVER;
});

export const positiveUsd = usd.refine((nanoUsd) => nanoUsd > 0n, "must be more than 0");

/** Query parameters are text. */
export const wholeNumber = z.string().regex(/^\d+$/, "must be a whole number").transform(Number);

/** The query of a list. */
export const pageQuery = z.strictObject({
  limit: wholeNumber.pipe(z.int().min(1).max(200)).default(50),
  after: z.string().min(1).max(200).optional(),
});

export const mint = z.string().refine(isAddress, "expected a Solana token mint (32 bytes in base58)");

/** The last second of the year 9999. */
export const maxUnixSeconds = 253_402_300_799;
const time = wholeNumber.pipe(z.int().max(maxUnixSeconds)).transform((seconds) => new Date(seconds * 1000));

/** The span of a list: from the first time, before the second. Unix seconds. */
export const timeSpan = { from: time.optional(), to: time.optional() };
