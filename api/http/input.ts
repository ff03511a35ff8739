import { isAddress } from "@solana/kit";
import { z } from "zod";
import { invalidFrom } from "#formats";
import { secondsAsDate } from "./fields.ts";

/** Parses a value, or throws a 400 that names the field. */
export function parse<T extends z.ZodType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw invalidFrom(parsed.error);
  return parsed.data;
}

export const name = z.string().trim().min(1).max(200);

/** A number in a query, whose parameters are text. */
export const wholeNumber = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((text, context) => {
    if (typeof text === "string" && /^\d+$/.test(text)) return Number(text);
    if (text !== undefined) context.issues.push({ code: "custom", message: "must be a whole number", input: text });
    return undefined;
  }, schema);

export const flag = z.codec(z.enum(["true", "false"]), z.boolean(), {
  decode: (text) => text === "true",
  encode: (value) => (value ? "true" : "false"),
});

/** A comma-separated list of some of these names, or `none`. */
export const listOfNames = <Name extends string>(names: readonly Name[]) =>
  z.string().transform((list, context): Name[] => {
    if (list === "none") return [];
    const named = list.split(",");
    const unknown = named.find((each) => !names.some((name) => name === each));
    if (unknown === undefined) return named as Name[];
    context.addIssue({ code: "custom", message: `'${unknown}' is not one of ${names.join(", ")}, or alone none` });
    return z.NEVER;
  });

/** A tag, a session or a user, as a filter. */
export const label = z.string().min(1).max(256);

export const mint = z.string().refine(isAddress, "expected a Solana token mint (32 bytes in base58)");

/** The last second of the year 9999. */
const maxUnixSeconds = 253_402_300_799;
const time = wholeNumber(secondsAsDate(z.int().min(0).max(maxUnixSeconds))).optional();

/** Query parameters that limit a list to a period. */
export const timeSpan = {
  from: time.describe("unix seconds"),
  to: time.describe("unix seconds, exclusive"),
};
