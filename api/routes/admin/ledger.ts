import { z } from "zod";
import { invalidValue } from "#errors";
import { entryKinds, requestStatuses } from "#money";
import type { Refusal } from "#refusals";
import { fields, inputFields, orNull, unixSeconds, usd, usdInput } from "../../http/fields.ts";
import { flag, label, timeSpan, wholeNumber } from "../../http/input.ts";
import { defaultLimit, found, listOf, pageOfCalls, pageQuery, readPage, text } from "../../http/page.ts";
import { accountIdOf } from "./accounts.ts";
import { entry, shownEntry, shownMovement } from "./entry.ts";
import { idOf, route } from "./route.ts";

const entryList = listOf(entry).meta({ id: "AdminEntryList" });
const ofAccount = idOf("The account's id");

const newCredit = inputFields({
  amount_usd: usdInput,
  idempotency_key: z.string().min(1).max(255),
  reason: z.string().min(1).max(1000).optional(),
});

export const check = fields({
  ok: z.boolean(),
  accounts: z.int(),
  difference_usd: usd,
  open_holds: z.int(),
  overdue_holds: z.int(),
  oldest_open_hold_seconds: z.int(),
  undecided: z.int(),
  of_accounts: z.int().describe("Approximate number of all accounts"),
  next: orNull(z.string()).describe("The value of `after` for the next part; null if all accounts were checked"),
}).meta({ id: "LedgerCheck", description: "The result for the accounts that this part checked" });

const hold = fields({
  id: z.string().describe("Id of the request or of the lease"),
  object: z.enum(["hold", "lease"]),
  account: z.string(),
  amount_usd: usd,
  held_at: unixSeconds,
  expires_at: unixSeconds,
}).meta({ id: "Hold" });

/** Names and ids that mean nothing without their account. */
const ofOneAccount = ["key", "sessionId", "user", "tag"] as const;

function requireAccount(query: { readonly [Name in (typeof ofOneAccount)[number] | "account"]?: unknown }): void {
  const field = query.account === undefined && ofOneAccount.find((name) => query[name] !== undefined);
  if (!field) return;
  const param = field === "sessionId" ? "session_id" : field;
  throw invalidValue(param, `${param}: requires account.`);
}

/** Renders a refused request, which is not in the ledger, like the entry of a call. */
const shownRefusal = ({ requestId: id, account, key, endpoint, status, code, message, createdAt }: Refusal) => ({
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
    errorMessage: message,
    usage: {},
    estimated: false,
    totalMs: 0,
    shortfallNanoUsd: 0n,
    byok: false,
  },
});

export const ledgerRoutes = [
  route({
    method: "post",
    path: "/accounts/{id}/credits",
    operationId: "createCredit",
    summary: "Add to a balance, once per idempotency_key",
    description: "A negative amount is deducted; if it is more than is available, the request gets a 409.",
    params: ofAccount,
    body: newCredit,
    answers: { 200: "The entry that an earlier request with this key created", 201: "The new entry" },
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
      restored: flag.optional().describe("List the entries restored from the archive instead"),
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
      "A page may be short or empty while `has_more` is true, because filters without an index are compared with a few thousand calls per page.",
    query: {
      ...pageQuery,
      account: text.optional().describe("The account's id, or its whole name in any case"),
      key: text.optional().describe("Requires `account`"),
      model: text.optional(),
      endpoint: text.optional(),
      status: z.enum(requestStatuses).optional(),
      code: text.optional(),
      upstream: text.optional(),
      session_id: label.optional().describe("Requires `account`, as do `user` and `tag`"),
      user: label.optional(),
      tag: label.optional(),
      ...timeSpan,
    },
    answers: { 200: "A page" },
    answer: entryList,
    async handle({ money }, { query: { limit = defaultLimit, account, ...query } }) {
      requireAccount({ account, ...query });
      const of = account === undefined ? {} : { account: await accountIdOf(money, account) };
      const page = await money.findCalls({ ...query, ...of, limit });
      const refunded = await money.refundedAmong(page.calls);
      return pageOfCalls(page, (call) => shownEntry(call, refunded.has(call)));
    },
  }),
  route({
    method: "get",
    path: "/requests/{id}",
    operationId: "getRequest",
    summary:
      "The ledger entry of a call, possibly restored from the archive, or a request refused in the last 24 hours",
    params: idOf("The `x-request-id` of the call"),
    answers: { 200: "The entry" },
    answer: entry,
    async handle({ money, refusals }, { params: { id } }) {
      const made = (await money.findEntry(id)) ?? (await money.archives.restoredEntry(id));
      const answered = made?.request?.status === "succeeded" ? undefined : await refusals.findOfAll(id);
      if (!made) return shownRefusal(found(answered, "request"));
      const { request, ...shown } = shownEntry(made, (await money.refundedAmong([made])).has(made));
      const isOfCall = answered !== undefined && answered.code === request?.error;
      const error = isOfCall && { httpStatus: answered.status, errorMessage: answered.message };
      return { ...shown, request: request && { ...request, ...error } };
    },
  }),
  route({
    method: "get",
    path: "/ledger/check",
    operationId: "checkLedger",
    summary: "Compare the balances with credits minus costs",
    description: "Add up the sums of all parts to get those of all accounts.",
    query: {
      full: flag.optional().describe("Read every entry, not only those since the last checkpoint"),
      pages: wholeNumber(z.int().min(1).max(1_000))
        .optional()
        .describe("Number of pages of 1,000 accounts to check; default: all"),
      after: text.optional().describe("`next` of the previous part"),
    },
    answers: { 200: "The result" },
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
    summary: "Open holds and leases, oldest first",
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
