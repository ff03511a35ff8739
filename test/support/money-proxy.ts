import type { Socket } from "node:net";
import mongoose from "mongoose";
import type { Clock } from "../../shared/platform/clock.ts";
import { startMoney } from "./money-setup.ts";
import { openWire } from "./wire.ts";

/**
 * `lose the request`: it does not reach the server. `lose the answer`: the server executes it, but its response is
 * dropped.
 */
export type Fate = "pass" | "lose the request" | "lose the answer";
export type Command = Readonly<Record<string, unknown>>;

/** A proxy for MongoDB that breaks where a test chooses. Commands are not compressed, so that each is one OP_MSG. */
export async function brokenWire(uri: string, fate: (command: Command) => Fate | Promise<Fate>): Promise<string> {
  const { url } = await openWire(uri, (client, server) => {
    let losing = false;
    const destroy = () => {
      client.destroy();
      server.destroy();
    };
    server.on("data", (data) => (losing ? destroy() : client.write(data)));
    onMessages(client, async (message) => {
      const decided = await fate(commandOf(message));
      if (decided === "lose the request") return destroy();
      losing = decided === "lose the answer";
      if (server.writable) server.write(message);
    });
  });
  url.search = `?directConnection=true&appName=${url.port}`;
  return url.href;
}

/** Another process of a bank, which loses the first of the commands that fit, and the number that it has sent. */
export async function losingMoney(
  { uri, clock }: { readonly uri: string; readonly clock: Clock },
  fits: (command: Command) => boolean,
  fate: Fate,
  losses = Number.POSITIVE_INFINITY,
) {
  let sent = 0;
  const wire = await brokenWire(uri, (command) => {
    if (!fits(command)) return "pass";
    sent += 1;
    return sent <= losses ? fate : "pass";
  });
  return { ...(await startMoney(wire, clock)), sent: () => sent };
}

/** Passes on whole messages, one after the other. */
function onMessages(socket: Socket, handle: (message: Buffer) => Promise<void>): void {
  let received = Buffer.alloc(0);
  let before = Promise.resolve();
  socket.on("data", (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
      const message = received.subarray(0, received.readInt32LE(0));
      received = received.subarray(message.length);
      before = before.then(() => handle(message));
    }
  });
}

const opMsg = 2013;

/** Reads the first section, after the header, the flags and the section's kind. */
function commandOf(message: Buffer): Command {
  if (message.readInt32LE(12) !== opMsg) return {};
  return mongoose.mongo.BSON.deserialize(message.subarray(21), { allowObjectSmallerThanBufferSize: true });
}
