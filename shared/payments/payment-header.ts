import { createHash } from "node:crypto";
import {
  type Address,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from "@solana/kit";
import type { PaymentPayload } from "@x402/core/types";
import { getTokenPayerFromTransaction } from "@x402/svm";
import { z } from "zod";
import { invalidValue } from "#errors";

/** What came in `PAYMENT-SIGNATURE`: well-formed, and nothing more is known of it. */
export interface Payment {
  readonly payload: PaymentPayload;
  /** Of the quote that it says it pays. */
  readonly memo: string;
  readonly messageHash: string;
  /** Can land only while the network remembers it. */
  readonly blockhash: string;
  readonly feePayer: Address;
  /** Whose tokens move; empty if no transfer is in it. */
  readonly payer: string;
}

const param = "payment-signature";
/** A transaction has at most 1,232 bytes; the rest is the quote that it repeats. */
const limitBytes = 16 * 1024;

const text = z.string().max(4_096);
const shape = z.looseObject({
  x402Version: z.literal(2),
  accepted: z.looseObject({
    scheme: text,
    network: text,
    asset: text,
    amount: text,
    payTo: text,
    maxTimeoutSeconds: z.number(),
    extra: z.looseObject({ memo: text }),
  }),
  payload: z.looseObject({ transaction: text }),
});

const bad = () => invalidValue(param, "PAYMENT-SIGNATURE is not a payment of x402 version 2 that can be decoded.");

/** As the packages do it: the same payment has the same hash in every signature of it. */
export const messageHashOf = (messageBytes: ArrayLike<number>): string =>
  createHash("sha256").update(Uint8Array.from(messageBytes)).digest("base64");

export const decodeTransaction = (base64: string) => getTransactionDecoder().decode(getBase64Encoder().encode(base64));

function readTransaction(base64: string) {
  const transaction = decodeTransaction(base64);
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  const [feePayer] = message.staticAccounts;
  if (feePayer === undefined || message.version === 1) throw bad();
  return {
    messageHash: messageHashOf(transaction.messageBytes),
    blockhash: message.lifetimeToken,
    feePayer,
    payer: getTokenPayerFromTransaction(transaction),
  };
}

/** Throws 400 for what cannot be decoded. */
export function decodePayment(header: string): Payment {
  if (header.length > limitBytes || !/^[A-Za-z0-9+/]+={0,2}$/.test(header)) throw bad();
  try {
    const payload = shape.parse(JSON.parse(Buffer.from(header, "base64").toString("utf8")));
    const read = readTransaction(payload.payload.transaction);
    return { payload: payload as unknown as PaymentPayload, memo: payload.accepted.extra.memo, ...read };
  } catch {
    throw bad();
  }
}
