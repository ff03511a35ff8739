import { accountMethods } from "./account-methods.ts";
import type { Method } from "./method.ts";
import { networkMethods } from "./network-methods.ts";
import { transactionMethods } from "./transaction-methods.ts";

/** The JSON-RPC methods: a validator's, as far as a payment and whoever looks at it need them. */
export const methods: Readonly<Record<string, Method>> = {
  ...networkMethods,
  ...accountMethods,
  ...transactionMethods,
};
