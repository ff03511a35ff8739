import type { PaymentRequirements } from "@x402/core/types";
import type { Payment } from "./payment-header.ts";

export type Outcome =
  | { readonly kind: "settled"; readonly signature: string }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing was sent: the network was silent, the fee cannot be paid, or the claim was lost before. */
  | { readonly kind: "unsent" }
  /** The chain alone can tell. The reason is for the log. */
  | { readonly kind: "unknown"; readonly reason: unknown };

/** Settles a payment that was verified and that nobody else is settling, and is asked once for it. */
export interface Facilitator {
  readonly feePayer: string;
  /** `remember` gets the signature before anything is sent, where it is known. Nothing is sent if it says no, or rejects. */
  settle(
    payment: Payment,
    requirements: PaymentRequirements,
    remember: (signature: string) => Promise<boolean>,
  ): Promise<Outcome>;
}
