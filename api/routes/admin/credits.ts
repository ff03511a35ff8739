import type { RequestHandler } from "express";
import { z } from "zod";
import type { Money } from "#money";
import { parse, usd } from "../../http/input.ts";
import { renderEntry } from "./entry.ts";

const newCredit = z.strictObject({
  amount_usd: usd,
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
