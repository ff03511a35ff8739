import { z } from "zod";
import type { ArchivedMonth, Money, RestoreState } from "#money";
import { fields, inputFields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage, text } from "../../http/page.ts";
import { idOf, route } from "./route.ts";

const archive = fields({
  id: z.string().describe("The month, such as `2026-01`"),
  object: tag("archive"),
  parts: z.int(),
  entries: z.int(),
  amount_usd: usd,
  bytes: z.int(),
  archived_at: unixSeconds.nullable().optional(),
  restore: orNull(
    fields({
      state: z.enum(["restoring", "restored", "removing"]),
      account: orNull(z.string()),
      parts: z.int().describe("Number of the archive's parts that are done"),
    }),
  ),
}).meta({ id: "Archive" });

const isMonth = /^\d{4}-(0[1-9]|1[0-2])$/;

const shown = (month: ArchivedMonth, restore: RestoreState | undefined) => ({
  ...month,
  amountNanoUsd: month.nanoUsd,
  restore,
});

async function find({ archives }: Money, id: string) {
  const month = isMonth.test(id) ? await archives.find(id) : undefined;
  return shown(found(month, "archive"), (await archives.restoreStates([id])).get(id));
}

const params = idOf("The month, such as `2026-01`");

/** Archived months of the ledger. A worker performs the requested restores and removals. */
export const archiveRoutes = [
  route({
    method: "get",
    path: "/archives",
    operationId: "listArchives",
    summary: "Archived months, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(archive).meta({ id: "ArchiveList" }),
    handle: ({ money: { archives } }, { query }) =>
      readPage(query, async (page) => {
        const months = await archives.list(page);
        const restores = await archives.restoreStates(months.map(({ id }) => id));
        return months.map((month) => shown(month, restores.get(month.id)));
      }),
  }),
  route({
    method: "get",
    path: "/archives/{id}",
    operationId: "getArchive",
    summary: "One month, with the progress of its restore",
    params,
    answers: { 200: "The archive" },
    answer: archive,
    handle: ({ money }, { params: { id } }) => find(money, id),
  }),
  route({
    method: "post",
    path: "/archives/{id}/restore",
    operationId: "restoreArchive",
    summary: "Have a worker restore a month",
    params,
    body: inputFields({ account: text.optional() }),
    answers: { 202: "The archive" },
    answer: archive,
    errors: [409],
    async handle({ money }, { params: { id }, body: { account } }) {
      await money.archives.restore(id, account);
      return find(money, id);
    },
  }),
  route({
    method: "delete",
    path: "/archives/{id}/restore",
    operationId: "removeRestored",
    summary: "Have a worker remove the restored entries of a month",
    params,
    answers: { 202: "The archive" },
    answer: archive,
    async handle({ money }, { params: { id } }) {
      await money.archives.removeRestored(id);
      return find(money, id);
    },
  }),
];
