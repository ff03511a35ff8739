import type { RequestHandler } from "express";
import { z } from "zod";
import { type Money, parseUsd } from "#money";
import { renderEntry } from "./entry.ts";
import { parse } from "./input.ts";

/** A string, because a JSON number would lose what a balance must not. */
const amount = z.string().transform((text, context) => {
  const nanoUsd = parseUsd(text);
  if (nanoUsd !== undefined && nanoUsd !== 0n) return nanoUsd;
  context.addIssue({ code: "custom", message: 'expected USD other than 0 with at most 9 decimals, like "25.00"' });
  return z.NEVER;
});

const newCredit = z.strictObject({
  amount_usd: amount,
  idempotency_key: z.string().min(1).max(255),
  reason: z.string().min(1).max(1000).optional(),
});

export function creditHandlers({ money }: { money: Money }) {
  return {
    add: async (req, res) => {
      const { amount_usd: amountNanoUsd, idempotency_key: idempotencyKey, reason } = parse(newCredit, req.body);
      const { entry, created } = await money.credit(req.params.id, {
        amountNanoUsd,
        idempotencyKey,
        ...(reason !== undefined && { reason }),
      });
      res.status(created ? 201 : 200).json(renderEntry(entry));
    },
  } satisfies Record<string, RequestHandler<{ id: string }>>;
}
