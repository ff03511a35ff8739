import type { Collection } from "mongoose";
import type { Files } from "#files";
import { audioJson } from "#formats";
import { isObject, type JsonObject } from "#json";
import type { PackedAnswer, Stored, StoredAnswer } from "./collection.ts";
import { isJob, type Job } from "./job.ts";
import { createPackedTexts, type Reserve, type TextName } from "./packed-text.ts";

/** The compressed texts of a job may be large. */
export const withoutTexts = { payload: 0, "answer.zstd": 0, "output.zstd": 0, "events.zstd": 0 } as const;

/** Larger results are only available under the result's address. */
const maxResultBytes = 256 * 1024;

/** Reads detached calls with their texts, or without them. */
export function createReading(
  collection: Collection<Stored>,
  files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">,
) {
  const texts = createPackedTexts(files);
  const find = (account: string, _id: string): Promise<Stored | null> =>
    collection.findOne({ account, _id }, { promoteBuffers: true });
  async function findJob(account: string, _id: string): Promise<Job | undefined> {
    const stored = (await collection.findOne({ account, _id }, { projection: withoutTexts })) as Stored | null;
    return stored && isJob(stored) ? stored : undefined;
  }

  async function findText<Name extends Exclude<TextName, "answer">>(
    account: string,
    _id: string,
    name: Name,
    reserve?: Reserve,
  ): Promise<{ packed: NonNullable<Stored[Name]>; text: string } | undefined> {
    const stored = await collection.findOne({ account, _id }, { promoteBuffers: true, projection: { [name]: 1 } });
    const packed = (stored as Stored | null)?.[name];
    if (!packed) return undefined;
    return { packed: packed as NonNullable<Stored[Name]>, text: await texts.unpack(_id, name, packed, reserve) };
  }

  async function unpackAnswer(requestId: string, packed: PackedAnswer, reserve?: Reserve): Promise<StoredAnswer> {
    const { zstd: _, textBytes: __, ...rest } = packed;
    return { ...rest, text: await texts.unpack(requestId, "answer", packed, reserve) };
  }

  async function findAnswer(account: string, requestId: string, reserve?: Reserve): Promise<StoredAnswer | undefined> {
    const stored = await collection.findOne(
      { account, _id: requestId },
      { promoteBuffers: true, projection: { answer: 1 } },
    );
    return stored?.answer && unpackAnswer(requestId, stored.answer, reserve);
  }

  const hasAnswer = async (account: string, _id: string): Promise<boolean> =>
    (await collection.findOne({ account, _id, answer: { $exists: true } }, { projection: { _id: 1 } })) !== null;

  /** The answer of the synchronous call as a JSON object. Null if it is something else, or large; undefined if there is none. */
  async function resultOf({
    account,
    _id: requestId,
    status,
    endpoint,
    answerFormat,
    answer: packed,
  }: Stored): Promise<JsonObject | null | undefined> {
    if (status !== "completed") return undefined;
    if ((packed?.textBytes ?? 0) > maxResultBytes) return null;
    const answer = await findAnswer(account, requestId);
    if (!answer || answer.text.length > maxResultBytes) return null;
    const value: unknown = JSON.parse(answer.text);
    if (!isObject(value)) return null;
    // Their routes convert the answer of a generation.
    return endpoint?.startsWith("/v1/audio/") ? (audioJson(value, answerFormat) ?? null) : value;
  }

  return { texts, find, findJob, findText, unpackAnswer, findAnswer, hasAnswer, resultOf };
}

export type Reading = ReturnType<typeof createReading>;
