import { z } from "zod";
import { type ArchivedMonth, formatUsd, type Money, type RestoreState } from "#money";
import { pageQuery, parse } from "../../http/input.ts";
import { found, type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

export const newRestore = z.strictObject({ account: z.string().min(1).max(200).optional() });
const isMonth = /^\d{4}-(0[1-9]|1[0-2])$/;

/** Archived months of the ledger. A worker does what is requested here. */
export function archiveHandlers({ money }: { money: Money }) {
  const { archives } = money;

  const render = (month: ArchivedMonth, restore: RestoreState | undefined) => ({
    id: month.id,
    object: "archive",
    parts: month.parts,
    entries: month.entries,
    amount_usd: formatUsd(month.nanoUsd),
    bytes: month.bytes,
    archived_at: month.archivedAt && unixSeconds(month.archivedAt),
    restore: restore ? { state: restore.state, account: restore.account ?? null, parts: restore.parts } : null,
  });

  async function show(id: string) {
    const month = isMonth.test(id) ? await archives.find(id) : undefined;
    return render(found(month, "archive"), (await archives.restoreStates([id])).get(id));
  }

  return {
    list: async (req) => {
      const list = async (page: Parameters<typeof archives.list>[0]) => {
        const months = await archives.list(page);
        const restores = await archives.restoreStates(months.map(({ id }) => id));
        return months.map((month) => ({ id: month.id, month, restore: restores.get(month.id) }));
      };
      return renderPage(parse(pageQuery, req.query), list, ({ month, restore }) => render(month, restore));
    },
    get: (req) => show(req.params.id),
    restore: async (req, res) => {
      const { account } = parse(newRestore, req.body ?? {});
      await archives.restore(req.params.id, account);
      res.status(202);
      return show(req.params.id);
    },
    remove: async (req, res) => {
      await archives.removeRestored(req.params.id);
      res.status(202);
      return show(req.params.id);
    },
  } satisfies Record<string, Handler>;
}
