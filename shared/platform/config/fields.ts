import { z } from "zod";

/** Fields of several groups of settings. */

export const count = (description: string, initial: number) =>
  z.coerce.number().int().positive().max(1e12).default(initial).describe(description);
export const between = (description: string, min: number, max: number, initial: number) =>
  z.coerce.number().int().min(min).max(max).default(initial).describe(description);
export const text = z.string().min(1);
export const usd = z.string().regex(/^\d{1,6}(\.\d{1,9})?$/, "must be a decimal amount in USD");
export const address = z.url({ protocol: /^https?$/ });
/** The variable may come from a file (`secret-files.ts`) and is never shown. */
export const secret = { secret: true };
