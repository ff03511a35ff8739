import { answerIndex, type Ledger, type LedgerEntry, toEntry } from "./ledger.ts";

/** What ids of answers that the service makes itself end with, after a prefix of their format. */
const randomPart = /(?:^|[_-])([0-9A-Za-z]{24})$/;

/** The id of an answer as the ledger stores it: not where it follows from the request's. */
export const storedAnswerId = (answerId: string | undefined, requestId: string): string | undefined =>
  answerId?.endsWith(requestId.slice("req_".length)) || (answerId?.length ?? 0) > 200 ? undefined : answerId;

/** A call by its request id, or by the id of its answer, of a key or of all; of several answers with one id the newest. */
export const createFindAnswer =
  ({ entry, collection }: Ledger) =>
  async (account: string, id: string, key: string | undefined): Promise<LedgerEntry | undefined> => {
    const visible = (found: LedgerEntry | undefined) =>
      found?.request && (key === undefined || found.request.key === key) ? found : undefined;
    const random = randomPart.exec(id)?.[1];
    const made = random === undefined ? undefined : visible(await entry(account, `req_${random}`));
    if (made) return made;
    const ofAnswer = { account, "request.answerId": id, ...(key !== undefined && { "request.key": key }) };
    const options = { hint: answerIndex, sort: { createdAt: -1 } } as const;
    const stored = await collection.findOne(ofAnswer as object, options);
    return stored ? toEntry(stored) : undefined;
  };
