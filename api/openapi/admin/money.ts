import { z } from "zod";
import { attemptOutcomes, entryKinds, requestStatuses } from "#money";
import { newRestore } from "../../routes/admin/archives.ts";
import { newCredit } from "../../routes/admin/ledger.ts";
import { newRefund } from "../../routes/admin/owed.ts";
import { type Group, unixSeconds, usd } from "../operation.ts";
import { adminOperation, idOf, listOf, pageQuery, pageWith } from "./operation.ts";

const milliseconds = z.number().nullable();
const attempt = z
  .object({
    upstream: z.string().nullable(),
    model: z.string().optional().describe("If it is not the request's"),
    started_ms: milliseconds.describe("From the call's acceptance"),
    duration_ms: milliseconds,
    outcome: z.enum(attemptOutcomes),
    status: z.int().optional(),
    code: z.string().optional(),
  })
  .meta({ id: "AdminAttempt" });

const request = z
  .object({
    key: z.string().nullable(),
    endpoint: z.string().nullable(),
    model: z.string().nullable(),
    upstream: z.string().nullable(),
    attempts: z.array(attempt),
    status: z.enum([...requestStatuses, "refused"]),
    error: z.string().optional(),
    http_status: z.int().optional().describe("Of the answer to a refused request, which is not in the ledger"),
    usage: z.record(z.string(), z.number()),
    estimated: z.boolean(),
    queue_ms: milliseconds,
    first_token_ms: milliseconds,
    total_ms: z.number(),
    shortfall_usd: usd,
    upstream_cost_usd: usd.optional(),
  })
  .meta({ id: "AdminRequest" });

const entry = z
  .object({
    id: z.string(),
    object: z.literal("entry"),
    account: z.string(),
    kind: z.enum(entryKinds),
    amount_usd: usd.describe("Signed"),
    refunded: z
      .literal(true)
      .optional()
      .describe("The cost of this call was given back; not said in lists of the ledger"),
    created_at: unixSeconds,
    idempotency_key: z.string().optional(),
    reason: z.string().optional(),
    transaction: z.string().optional(),
    buyback: z.object({ token: z.string(), amount_usd: usd, batch: z.string().nullable() }).optional(),
    request: request.optional(),
  })
  .meta({ id: "AdminEntry" });

const check = z
  .object({
    ok: z.boolean(),
    accounts: z.int(),
    difference_usd: usd,
    open_holds: z.int(),
    overdue_holds: z.int(),
    oldest_open_hold_seconds: z.int(),
    undecided: z.int(),
    of_accounts: z.int().describe("About how many accounts there are"),
    next: z.string().nullable().describe("null: all accounts are checked. Else the `after` of the next part"),
  })
  .meta({ id: "LedgerCheck", description: "Of the accounts that this part checked" });

const hold = z
  .object({
    id: z.string().describe("The request's or the lease's"),
    object: z.enum(["hold", "lease"]),
    account: z.string(),
    amount_usd: usd,
    held_at: unixSeconds,
    expires_at: unixSeconds,
  })
  .meta({ id: "Hold" });

const archive = z
  .object({
    id: z.string().describe("The month, `2026-01`"),
    object: z.literal("archive"),
    parts: z.int(),
    entries: z.int(),
    amount_usd: usd,
    bytes: z.int(),
    archived_at: unixSeconds.nullable().optional(),
    restore: z
      .object({
        state: z.enum(["restoring", "restored", "removing"]),
        account: z.string().nullable(),
        parts: z.int().describe("Of the archive's parts, those that are done"),
      })
      .nullable(),
  })
  .meta({ id: "Archive" });

const owed = z
  .object({
    id: z.string(),
    object: z.literal("owed"),
    account: z.string(),
    payer: z.string().nullable(),
    transaction: z.string().nullable(),
    paid_usd: usd,
    owed_usd: usd,
    paid_at: unixSeconds,
    good_until: unixSeconds,
  })
  .meta({ id: "Owed" });
const owedTotal = z
  .object({ object: z.literal("owed_total"), owed_usd: usd, payments: z.int() })
  .meta({ id: "OwedTotal" });

const accrual = z
  .object({ object: z.literal("accrual"), token: z.string(), amount_usd: usd, entries: z.int() })
  .meta({ id: "Accrual" });
const batch = z
  .object({
    id: z.string(),
    object: z.literal("batch"),
    token: z.string(),
    state: z.string(),
    amount_usd: usd,
    entries: z.int(),
    created_at: unixSeconds,
    executor: z.string().nullable(),
    transaction: z.string().nullable(),
    spent_usd: usd.nullable(),
    received: z.string().nullable().describe("In the token's smallest unit"),
    done_at: unixSeconds.nullable(),
  })
  .meta({ id: "BuybackBatch" });

const text = z.string().min(1).max(200).optional();
const flag = z.enum(["true", "false"]).optional();
const over = flag.describe("Only what its payer can no longer use");
const ofMonth = idOf("The month, such as `2026-01`");
const archiveAnswer = ["The archive", archive] as const;
const entryList = listOf("AdminEntry", entry);

export const money: Group = {
  name: "Money",
  description: "Balances, the ledger, its archive, payments and buybacks",
  operations: {
    "POST /accounts/{id}/credits": adminOperation("createCredit", "Add to a balance, once for each idempotency_key", {
      description: "A negative amount takes back, and is a 409 if more than is available.",
      path: idOf("The account's id"),
      body: newCredit,
      answers: { 200: ["The entry that the key had made before", entry], 201: ["The new entry", entry] },
      errors: [409],
    }),
    "GET /accounts/{id}/ledger": adminOperation("listEntries", "The account's ledger, newest first", {
      path: idOf("The account's id"),
      query: pageWith({ kind: z.enum(entryKinds).optional(), restored: flag.describe("Those of the archive") }),
      answers: { 200: ["A page", entryList] },
    }),
    "GET /requests": adminOperation("listRequests", "Calls of all accounts, newest first", {
      description:
        "A page may be short, or empty, while `has_more` is true: what no index has is compared with some thousand calls. Over all accounts `model`, `endpoint` and `upstream` need `code`, or `status` with `failed` or `cancelled`, beside them.",
      query: pageWith({
        account: text,
        key: text.describe("Needs its account beside it"),
        model: text,
        endpoint: text,
        status: z.enum(requestStatuses).optional(),
        code: text,
        upstream: text,
        from: z.int().optional().describe("unix seconds"),
        to: z.int().optional().describe("unix seconds, not included"),
      }),
      answers: { 200: ["A page", entryList] },
    }),
    "GET /requests/{id}": adminOperation(
      "getRequest",
      "The entry of one call, also a restored one, or a request that was refused in the last 24 hours",
      {
        path: idOf("The `x-request-id` of the call"),
        answers: { 200: ["The entry", entry] },
      },
    ),
    "GET /ledger/check": adminOperation("checkLedger", "Compares credits less costs with the balances", {
      description: "The sums of the parts are those of all accounts.",
      query: z.object({
        full: flag.describe("Reads every entry, not only those since the last checkpoint"),
        pages: z
          .int()
          .min(1)
          .max(1_000)
          .optional()
          .describe("Ends after so many pages of 1,000 accounts; default: all"),
        after: z.string().min(1).max(200).optional().describe("`next` of the part before"),
      }),
      answers: { 200: ["What was found", check] },
    }),
    "GET /holds": adminOperation("listHolds", "What is held for calls that run, oldest first", {
      query: pageQuery,
      answers: { 200: ["A page", listOf("Hold", hold)] },
    }),
    "GET /archives": adminOperation("listArchives", "Archived months, newest first", {
      query: pageQuery,
      answers: { 200: ["A page", listOf("Archive", archive)] },
    }),
    "GET /archives/{id}": adminOperation("getArchive", "One month, with the progress of its restore", {
      path: ofMonth,
      answers: { 200: archiveAnswer },
    }),
    "POST /archives/{id}/restore": adminOperation("restoreArchive", "Have a worker copy a month back", {
      path: ofMonth,
      body: newRestore,
      answers: { 202: archiveAnswer },
      errors: [409],
    }),
    "DELETE /archives/{id}/restore": adminOperation("removeRestored", "Remove what was restored", {
      path: ofMonth,
      answers: { 202: archiveAnswer },
    }),
    "GET /owed": adminOperation("listOwed", "Unused amounts of x402 payments, in the order of their ids", {
      query: pageWith({ over }),
      answers: { 200: ["A page", listOf("Owed", owed)] },
    }),
    "GET /owed/total": adminOperation("getOwedTotal", "Their sum", {
      query: z.object({ over }),
      answers: { 200: ["The sum", owedTotal] },
    }),
    "POST /owed/{id}/refunds": adminOperation(
      "recordRefund",
      "Record what was paid back on chain, once a transaction",
      {
        path: idOf("The payment's id"),
        body: newRefund,
        answers: { 200: ["The entry that the transaction had made before", entry], 201: ["The new entry", entry] },
        errors: [409],
      },
    ),
    "GET /buyback/accruals": adminOperation("listAccruals", "By token, what is in no batch yet", {
      answers: { 200: ["All of them", listOf("Accrual", accrual)] },
    }),
    "GET /buyback/batches": adminOperation("listBatches", "Purchases, newest first", {
      query: pageQuery,
      answers: { 200: ["A page", listOf("BuybackBatch", batch)] },
    }),
  },
};
