import { between, usd } from "./fields.ts";

/** Calls with customers' own provider keys. */
export const ownKeys = {
  BYOK_FEE_BPS: between(
    "Fee of a call with a provider key of its account, in basis points of what the call would have cost otherwise. API and workers need the same value",
    0,
    10_000,
    500,
  ),
  BYOK_FREE_USD_MONTH: usd
    .default("0")
    .describe(
      "USD of such calls, at the list price, whose fees are credited back to each account in a month (UTC); 0 credits nothing",
    ),
};
