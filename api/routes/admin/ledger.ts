import { z } from "zod";
import { invalidValue } from "#errors";
import { entryKinds, requestStatuses } from "#money";
import type { Refusal } from "#refusals";
import { fields, inputFields, orNull, unixSeconds, usd, usdInput } from "../../http/fields.ts";
import { flag, timeSpan, wholeNumber } from "../../http/input.ts";
import { defaultLimit, found, listOf, pageOfCalls, pageQuery, readPage, text } from "../../http/page.ts";
import { entry, shownEntry, shownMovement } from "./entry.ts";
import { idOf, route } from "./route.ts";

const entryList = listOf(entry).meta({ id: "AdminEntryList" });
const ofAccount = idOf("The account's id");

const newCredit = inputFields({
  amount_usd: usdInput,
  idempotency_key: z.string().min(1).max(255),
  reason: z.string().min(1).max(1000).optional(),
});

const check = fields({
  ok: z.boolean(),
  accounts: z.int(),
  difference_usd: usd,
  open_holds: z.int(),
  overdue_holds: z.int(),
  oldest_open_hold_seconds: z.int(),
  undecided: z.int(),
  of_accounts: z.int().describe("About how many accounts there are"),
  next: orNull(z.string()).describe("null: all accounts are checked. Else the `after` of the next part"),
}).meta({ id: "LedgerCheck", description: "Of the accounts that this part checked" });

const hold = fields({
  id: z.string().describe("The request's or the lease's"),
  object: z.enum(["hold", "lease"]),
  account: z.string(),
  amount_usd: usd,
  held_at: unixSeconds,
  expires_at: unixSeconds,
}).meta({ id: "Hold" });

type Filter = {
  readonly [Name in "account" | "key" | "model" | "endpoint" | "upstream" | "code" | "status"]?: unknown;
};

/** Throws 400 for a filter without an index, unless it is combined with an indexed one. */
function requireIndex(query: Filter): void {
  if (query.account !== undefined) return;
  if (query.key !== undefined) throw invalidValue("key", "key: needs its account beside it.");
  const hasIndex = query.code !== undefined || query.status === "failed" || query.status === "cancelled";
  for (const field of ["model", "endpoint", "upstream"] as const)
    if (query[field] !== undefined && !hasIndex)
      throw invalidValue(field, `${field}: needs account, code, or status=failed or cancelled beside it.`);
}

/** Renders a refused request, which is not in the ledger, like the entry of a call. */
const shownRefusal = ({ requestId: id, account, key, endpoint, status, code, createdAt }: Refusal) => ({
  id,
  account,
  kind: "usage" as const,
  amountNanoUsd: 0n,
  createdAt,
  request: {
    key,
    endpoint,
    attempts: [],
    status: "refused" as const,
    error: code,
    httpStatus: status,
    usage: {},
    estimated: false,
    totalMs: 0,
    shortfallNanoUsd: 0n,
  },
});

export const ledgerRoutes = [
  route({
    method: "post",
    path: "/accounts/{id}/credits",
    operationId: "createCredit",
    summary: "Add to a balance, once for each idempotency_key",
    description: "A negative amount takes back, and is a 409 if more than is available.",
    params: ofAccount,
    body: newCredit,
    answers: { 200: "The entry that the key had made before", 201: "The new entry" },
    answer: entry,
    errors: [409],
    async handle({ money, leases }, { params: { id }, body: credit, res }) {
      // Settle idle leases, so that their amounts are available.
      if (credit.amountNanoUsd < 0n) await leases.settleIdle(id);
      return shownMovement(res, await money.credit(id, credit));
    },
  }),
  route({
    method: "get",
    path: "/accounts/{id}/ledger",
    operationId: "listEntries",
    summary: "The account's ledger, newest first",
    params: ofAccount,
    query: {
      ...pageQuery,
      kind: z.enum(entryKinds).optional(),
      restored: flag.optional().describe("Those of the archive"),
    },
    answers: { 200: "A page" },
    answer: entryList,
    async handle({ money }, { params, query: { kind, restored, ...query } }) {
      const list = restored ? money.archives.restoredEntries : money.ledger;
      const { id } = found(await money.account(params.id), "account");
      return readPage(query, async (page) => (await list(id, { ...page, kind })).map((each) => shownEntry(each)));
    },
  }),
  route({
    method: "get",
    path: "/requests",
    operationId: "listRequests",
    summary: "Calls of all accounts, newest first",
    description:
      "A page may be short, or empty, while `has_more` is true: what no index has is compared with some thousand calls. Over all accounts `model`, `endpoint` and `upstream` need `code`, or `status` with `failed` or `cancelled`, beside them.",
    query: {
      ...pageQuery,
      account: text.optional(),
      key: text.optional().describe("Needs its account beside it"),
      model: text.optional(),
      endpoint: text.optional(),
      status: z.enum(requestStatuses).optional(),
      code: text.optional(),
      upstream: text.optional(),
      ...timeSpan,
    },
    answers: { 200: "A page" },
    answer: entryList,
    async handle({ money }, { query: { limit = defaultLimit, ...query } }) {
      requireIndex(query);
      const page = await money.findCalls({ ...query, limit });
      const refunded = await money.refundedAmong(page.calls);
      return pageOfCalls(page, (call) => shownEntry(call, refunded.has(call)));
    },
  }),
  route({
    method: "get",
    path: "/requests/{id}",
    operationId: "getRequest",
    summary: "The entry of one call, also a restored one, or a request that was refused in the last 24 hours",
    params: idOf("The `x-request-id` of the call"),
    answers: { 200: "The entry" },
    answer: entry,
    async handle({ money, refusals }, { params: { id } }) {
      const made = (await money.findEntry(id)) ?? (await money.archives.restoredEntry(id));
      if (!made) return shownRefusal(found(await refusals.findOfAll(id), "request"));
      return shownEntry(made, (await money.refundedAmong([made])).has(made));
    },
  }),
  route({
    method: "get",
    path: "/ledger/check",
    operationId: "checkLedger",
    summary: "Compares credits less costs with the balances",
    description: "The sums of the parts are those of all accounts.",
    query: {
      full: flag.optional().describe("Reads every entry, not only those since the last checkpoint"),
      pages: wholeNumber(z.int().min(1).max(1_000))
        .optional()
        .describe("Ends after so many pages of 1,000 accounts; default: all"),
      after: text.optional().describe("`next` of the part before"),
    },
    answers: { 200: "What was found" },
    answer: check,
    async handle({ money, leases }, { query: { full = false, pages, after } }) {
      await leases.settleIdle();
      const part = { ...(pages !== undefined && { maxPages: pages }), ...(after !== undefined && { after }) };
      const [checked, ofAccounts] = await Promise.all([money.check({ full, ...part }), money.countAccounts()]);
      return { ...checked, ofAccounts };
    },
  }),
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
