import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { type Face, faces, relayedModel, withRelayedModel } from "../support/native-formats.ts";
import { eventsOf, saidIn } from "../support/native-stream-events.ts";
import { isFull } from "../support/property-runs.ts";
import type { Customer } from "../support/service.ts";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });

const deltaLength = 64 * 1024;
const sizes = { "400 KB": 400_000, "2 MB": 2_000_000, "20 MB": 20_000_000 } as const;

/** All events in one write of the provider. */
function burstOf(length: number): string {
  const deltas = Array.from({ length: Math.ceil(length / deltaLength) }, (_, at) =>
    mockChunk({
      content: String.fromCharCode(97 + (at % 26)).repeat(Math.min(deltaLength, length - at * deltaLength)),
    }),
  );
  const events = [...deltas, mockChunk({}, "stop"), mockChunk(undefined, null, { usage: mockUsage("Hi") })];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}

/** A caller's way of reading: resolves with the whole text of the response. */
type Reading = (response: IncomingMessage) => Promise<string>;

const atOnce: Reading = async (response) => {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

/** The pace of a slow caller, who waits once for everything. */
const slow = { startsAfterMs: 3_000, tickMs: 50, bytesPerSecond: 1_000_000 };
const later: Reading = async (response) => {
  response.pause();
  await wait(slow.startsAfterMs);
  return atOnce(response);
};
const slowly: Reading = async (response) => {
  const parts: Buffer[] = [];
  const ended = once(response, "end");
  const perTick = (slow.bytesPerSecond * slow.tickMs) / 1_000;
  const timer = setInterval(() => {
    for (let due = perTick; due > 0; ) {
      const part = response.read(Math.min(due, response.readableLength || due)) as Buffer | null;
      if (part === null) return;
      parts.push(part);
      due -= part.length;
    }
  }, slow.tickMs);
  await ended.finally(() => clearInterval(timer));
  return Buffer.concat(parts).toString();
};

function ask({ key }: Customer, face: Face, size: keyof typeof sizes): Promise<IncomingMessage> {
  const { path, body } = face.stream(relayedModel, size);
  return new Promise((resolve, reject) => {
    request(`${running.service.baseUrl}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    })
      .on("response", resolve)
      .on("error", reject)
      .end(JSON.stringify(body));
  });
}

const all = Object.keys(sizes) as (keyof typeof sizes)[];
const [chat] = faces as [Face];
const callers: readonly (readonly [string, Face, keyof typeof sizes, Reading])[] = [
  ...faces.flatMap((face) =>
    all.flatMap((size) => [["at once", face, size, atOnce] as const, ["after 3 s", face, size, later] as const]),
  ),
  ...faces.flatMap((face) =>
    all
      .filter((size) => isFull || face === chat || size === "400 KB")
      .map((size) => ["at 1 MB/s", face, size, slowly] as const),
  ),
];

test("a stream that a provider sends in one burst arrives whole, of whatever size and however slowly it is read", async () => {
  const bursts = new Map(all.map((size) => [size as string, burstOf(sizes[size])]));
  running.provider.always(({ body }) => {
    const [{ content }] = body["messages"] as [{ content: string }];
    return { events: [bursts.get(content)] };
  });
  const customer = await running.service.account("1000", { limits: { concurrent_requests: 100 } });
  const cut: string[] = [];
  await Promise.all(
    callers.map(async ([how, face, size, read]) => {
      const what = `${face.name}, ${size}, ${how}`;
      const response = await ask(customer, face, size);
      const text = await read(response).catch((error: Error) => error.message);
      const said = response.complete ? saidIn(face, eventsOf(face, text)).length : text.length;
      if (!response.complete || said !== sizes[size]) cut.push(`${what}: ${said} of ${sizes[size]}`);
    }),
  );
  expect(cut).toEqual([]);
  expect(await running.service.settled()).toMatchObject({ ok: true, difference_usd: "0.00", undecided: 0 });
}, 240_000);
