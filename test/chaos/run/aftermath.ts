import { setTimeout as wait } from "node:timers/promises";
import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import type { mongo } from "mongoose";
import type { Aftermath, Balance, BookEntry, RunLog } from "./run-log.ts";
import { isNotFound, type World } from "./world.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The resources of a dead API instance are free two minutes after its calls' deadline. */
const settleWithinMs = 300_000;
/** The time limit for refunding the calls of a dead API instance. */
const refundWithinMs = 60_000;

export const nanoUsd = (decimal: unknown): bigint => {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(decimal)) ?? [];
  return BigInt(`${sign}${whole}${fraction.padEnd(9, "0")}`);
};

/** Unfinished jobs of calls, by BullMQ's own keys. Those of other pools are scheduled, so one is always delayed. */
async function openJobs({ stores }: World): Promise<number> {
  const { control } = stores.redis.primary();
  const keys = await control.keys("*");
  const ofCalls = keys.filter((key) => !/maintenance|batches/.test(key));
  const lists = ofCalls.filter((key) => /:(wait|active|prioritized|delayed)$/.test(key));
  const counts = lists.map((key) => (/:(wait|active)$/.test(key) ? control.llen(key) : control.zcard(key)));
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

async function everyPage({ admin }: World, path: string): Promise<Fields[]> {
  const all: Fields[] = [];
  for (let after: unknown; ; ) {
    const page = await admin("GET", path, { limit: 200, after });
    all.push(...(page["data"] as Fields[]));
    if (page["next"] === null) return all;
    after = page["next"];
  }
}

/** A payment that was cut off before the service had it leaves no account. */
async function findAccount({ admin }: World, id: string): Promise<Fields[]> {
  try {
    return [await admin("GET", `/accounts/${id}`)];
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

const entryOf = ({ id, account, kind, amount_usd, request }: Fields): BookEntry => ({
  id: String(id),
  account: String(account),
  kind: String(kind),
  amountNanoUsd: nanoUsd(amount_usd),
  shortfallNanoUsd: nanoUsd((request as Fields | undefined)?.["shortfall_usd"] ?? "0"),
});

const balanceOf = ({ id, available_usd, held_usd }: Fields): Balance => ({
  account: String(id),
  availableNanoUsd: nanoUsd(available_usd),
  heldNanoUsd: nanoUsd(held_usd),
});

type Parts = readonly { readonly key: string }[];
/** A file of a batch, or a batch. */
type WithParts = { readonly [field in "parts" | "outputs" | "failures"]?: Parts };

/** All objects of the bucket, plus those objects and open multipart uploads that no record names. */
export async function objectKeys(
  {
    S3_ENDPOINT = "",
    S3_REGION = "us-east-1",
    S3_BUCKET: Bucket = "inference",
    ...keys
  }: Readonly<Record<string, string>>,
  database: mongo.Db,
): Promise<{ found: readonly string[]; stray: readonly string[] }> {
  const credentials = {
    accessKeyId: keys["S3_ACCESS_KEY_ID"] ?? "",
    secretAccessKey: keys["S3_SECRET_ACCESS_KEY"] ?? "",
  };
  const s3 = new S3Client({ endpoint: S3_ENDPOINT, region: S3_REGION, credentials, forcePathStyle: true });
  const found: string[] = [];
  for (let token: string | undefined; ; ) {
    const page = await s3.send(new ListObjectsV2Command({ Bucket, ContinuationToken: token }));
    found.push(...(page.Contents ?? []).map(({ Key = "" }) => Key));
    token = page.NextContinuationToken;
    if (token === undefined) break;
  }
  const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket }));
  s3.destroy();
  const known = new Set<string>();
  for (const name of ["uploads", "files"])
    for await (const { _id } of database.collection<{ _id: string }>(name).find({}, { projection: { _id: 1 } }))
      known.add(`${name}/${_id}`);
  const ofBatches = { projection: { parts: 1, outputs: 1, failures: 1 } };
  for (const name of ["batchFiles", "batches"])
    for await (const { parts = [], outputs = [], failures = [] } of database
      .collection<WithParts>(name)
      .find({}, ofBatches))
      for (const { key } of [...parts, ...outputs, ...failures]) known.add(key);
  const open = Uploads.map(({ Key }) => `${Key}, a multipart upload`);
  return { found, stray: [...found.filter((key) => !known.has(key)), ...open] };
}

/** Waits until nothing is open, or until the time limit. */
export async function readAftermath(
  world: World,
  { calls, faults }: Pick<RunLog, "calls" | "faults">,
  say: (text: string) => void,
): Promise<Aftermath> {
  const killedMs = faults.flatMap(({ kind, startedMs }) => (kind === "api killed" ? [startedMs] : []));
  await wait(Math.max(0, ...killedMs.map((ms) => ms + refundWithinMs - Date.now())));
  const startedAt = Date.now();
  for (let saidAt = 0; Date.now() < startedAt + settleWithinMs; await wait(1_000)) {
    const check = await world.admin("GET", "/ledger/check");
    const jobs = await openJobs(world);
    if (check["open_holds"] === 0 && check["undecided"] === 0 && jobs === 0) break;
    if (Date.now() < saidAt + 20_000) continue;
    saidAt = Date.now();
    say(
      `waiting: ${String(check["open_holds"])} holds, ${String(check["undecided"])} undecided, ${jobs} jobs are open`,
    );
  }
  const check = await world.admin("GET", "/ledger/check", { full: "true" });
  const paid = calls.filter(({ account }) => account.startsWith("x402:"));
  const paidAccounts = await Promise.all(paid.map(({ account }) => findAccount(world, account)));
  const accounts = [...(await everyPage(world, "/accounts")), ...paidAccounts.flat()];
  const entries = await Promise.all(accounts.map(({ id }) => everyPage(world, `/accounts/${String(id)}/ledger`)));
  const deliveries = await world.stores.mongo.client
    .db()
    .collection<{ _id: string; reply: { instance: string } }>("ledger")
    .find({ "reply.instance": { $exists: true } }, { projection: { "reply.instance": 1 } })
    .toArray();
  const deliveredBy = new Map(deliveries.map(({ _id, reply }) => [_id, reply.instance]));
  return {
    entries: entries
      .flat()
      .map(entryOf)
      .map((entry) => {
        const instance = deliveredBy.get(entry.id);
        return instance === undefined ? entry : { ...entry, deliveredBy: instance };
      }),
    balances: accounts.map(balanceOf),
    openHolds: Number(check["open_holds"]),
    undecided: Number(check["undecided"]),
    openJobs: await openJobs(world),
    checkOk: check["ok"] === true,
    checkDifferenceNanoUsd: nanoUsd(check["difference_usd"]),
    strayObjects: (await objectKeys(world.stores.env, world.stores.mongo.client.db())).stray,
  };
}
