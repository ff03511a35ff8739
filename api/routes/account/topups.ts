import { z } from "zod";
import { notFound } from "#errors";
import { formatUsd } from "#money";
import type { Payments, Topup } from "#payments";
import { pageQuery, parse, usd } from "../../http/input.ts";
import { found, renderPage, unixSeconds } from "../../http/json-routes.ts";
import type { AccountHandler } from "./handler.ts";

const newTopup = z.strictObject({ amount_usd: usd });

const renderTopup = (topup: Topup) => ({
  id: topup.id,
  object: "topup",
  status: topup.status,
  amount_usd: formatUsd(topup.nanoUsd),
  received_usd: formatUsd(topup.receivedNanoUsd),
  transaction: topup.transaction ?? null,
  solana_pay_url: topup.url,
  reference: topup.reference,
  recipient: topup.recipient,
  created_at: unixSeconds(topup.createdAt),
  expires_at: unixSeconds(topup.expiresAt),
});

export function topupHandlers({ payments }: { payments: Pick<Payments, "topups"> }) {
  const enabled = () => {
    if (!payments.topups) throw notFound("top-up: this service takes no payments on chain");
    return payments.topups;
  };
  return {
    create: async (req, res, { account }) => {
      const topups = enabled();
      const topup = await topups.open(account, parse(newTopup, req.body).amount_usd);
      res.status(201);
      return renderTopup(topup);
    },
    list: (req, _res, { account }) => {
      const topups = enabled();
      return renderPage(parse(pageQuery, req.query), (page) => topups.list(account, page), renderTopup);
    },
    get: async (req, _res, { account }) => renderTopup(found(await enabled().find(account, req.params.id), "top-up")),
  } satisfies Record<string, AccountHandler>;
}
