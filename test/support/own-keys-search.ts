import { once } from "node:events";
import { connect } from "node:net";
import { GetObjectCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import mongoose from "mongoose";
import { onTestFinished } from "vitest";
import { loadConfig } from "../../shared/platform/config.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import type { Stores } from "./servers.ts";
import { environment } from "./service.ts";

/**
 * Records every command that this database of Redis gets, one a line, each argument in quotes. Not by ioredis, which takes
 * commands that come in one packet with the reply to MONITOR for replies.
 */
export async function watchRedis({ REDIS_URL }: Stores): Promise<{ text: () => string }> {
  const { hostname, port, pathname } = new URL(REDIS_URL);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  onTestFinished(() => void socket.destroy());
  let seen = "";
  socket.on("data", (text: string) => {
    seen += text;
  });
  socket.write("MONITOR\r\n");
  await once(socket, "data");
  const database = `[${pathname.slice(1) || "0"} `;
  const isOwn = (line: string) => line.includes(database);
  return { text: () => seen.split("\r\n").filter(isOwn).join("\n") };
}

const plain = (_: string, value: unknown) =>
  typeof value === "bigint"
    ? String(value)
    : typeof value === "object" && value !== null && "type" in value && value.type === "Buffer"
      ? Buffer.from((value as { data?: number[] }).data ?? []).toString("latin1")
      : value;

/** Everything that MongoDB and S3 have, by the name of its place. Texts that are stored compressed are not looked into. */
export async function storedTexts(stores: Stores): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const connection = await mongoose.createConnection(stores.MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  for (const collection of (await connection.db?.collections()) ?? [])
    texts.set(`mongodb ${collection.collectionName}`, JSON.stringify(await collection.find().toArray(), plain));
  const s3 = connectS3(loadConfig(environment(stores)), "commands");
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: stores.S3_BUCKET }));
  for (const { Key = "" } of Contents) {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: stores.S3_BUCKET, Key }));
    texts.set(`s3 ${Key}`, (await Body?.transformToString("latin1")) ?? "");
  }
  s3.destroy();
  return texts;
}
