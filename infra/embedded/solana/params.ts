import { type Address, isAddress } from "@solana/kit";
import { z } from "zod";
import { RpcError } from "./failures.ts";

const options = z.object({
  commitment: z.enum(["processed", "confirmed", "finalized"]).default("finalized"),
  encoding: z.string().optional(),
  dataSlice: z.object({ offset: z.number().int().min(0), length: z.number().int().min(0) }).optional(),
  limit: z.number().int().min(1).max(1000).default(1000),
  before: z.string().optional(),
  until: z.string().optional(),
  maxSupportedTransactionVersion: z.number().optional(),
  accounts: z.object({ addresses: z.array(z.string()).max(64), encoding: z.string().optional() }).optional(),
  replaceRecentBlockhash: z.boolean().default(false),
  searchTransactionHistory: z.boolean().default(false),
  sigVerify: z.boolean().default(false),
  skipPreflight: z.boolean().default(false),
});
export type Options = z.infer<typeof options>;

export const invalid = (message: string) => new RpcError(-32602, `Invalid params: ${message}`);

export function read<T>(type: z.ZodType<T>, value: unknown): T {
  const parsed = type.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`).join("; "));
}

/** Some clients write null for what they leave out. */
const withoutNulls = (value: object) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null));
export const optionsOf = (value: unknown): Options => {
  const given = value ?? {};
  return read(options, typeof given === "object" ? withoutNulls(given) : given);
};

export const text = (value: unknown): string => read(z.string(), value);
export const address = (value: unknown): Address => {
  const given = text(value);
  if (!isAddress(given)) throw invalid(`${given} is no address`);
  return given;
};

/** Of a transaction that is sent. As for a node, it is base58 unless something else is said. */
export const encodingOf = ({ encoding = "base58" }: Options) => read(z.enum(["base58", "base64"]), encoding);
