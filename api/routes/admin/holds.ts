import { z } from "zod";
import { fields, unixSeconds, usd } from "../../http/fields.ts";
import { listOf, pageQuery, readPage } from "../../http/page.ts";
import { route } from "./route.ts";

const hold = fields({
  id: z.string().describe("The request's or the lease's"),
  object: z.enum(["hold", "lease"]),
  account: z.string(),
  amount_usd: usd,
  held_at: unixSeconds,
  expires_at: unixSeconds,
}).meta({ id: "Hold" });

export const holdRoutes = [
  route({
    method: "get",
    path: "/holds",
    operationId: "listHolds",
    summary: "What is held for calls that run, oldest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(hold).meta({ id: "HoldList" }),
    async handle({ money, leases }, { query }) {
      await leases.settleIdle();
      const { data, ...page } = await readPage(query, money.listHolds);
      const shown = data.map((each) => ({
        ...each,
        id: each.hold,
        object: each.isLease ? ("lease" as const) : ("hold" as const),
        amountNanoUsd: each.nanoUsd,
      }));
      return { ...page, data: shown };
    },
  }),
];
