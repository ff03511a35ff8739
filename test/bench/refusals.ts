import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { processOf, runBench, theService } from "./bench.ts";
import { cpuMs, residentBytes, watchMost } from "./processes.ts";
import { noLimits, openKey, type Service } from "./service.ts";

/**
 * The cost of refused callers: `node test/bench/refusals.ts [stalled callers]`. Prints the processor time of a call
 * refused for its balance, and the API's memory while callers with one key send 24 MB each and then stall.
 */
const refusedCalls = 6_000;
const connections = 16;
const stalledBytes = 24 * 1024 * 1024;
const stalledCallers = Number(process.argv[2] ?? 600);

const say = (text: string) => void process.stdout.write(`${text}\n`);
const inMebi = (bytes: number) => (bytes / 1024 ** 2).toFixed(0);

const body = JSON.stringify({ model: "local/chat", messages: [{ role: "user", content: "Hello there" }] });

const portOf = ({ target }: Service) => Number(new URL(target.origin).port);

const call = (service: Service, agent: Agent, key: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": body.length,
    };
    const to = { port: portOf(service), host: "127.0.0.1", path: "/v1/chat/completions" };
    request({ ...to, method: "POST", headers, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end(body);
  });

async function refusals(service: Service): Promise<void> {
  const processes = [processOf(service, "api"), ...service.servers];
  const { key } = await openKey(service.admin, { limits: noLimits });
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const run = (calls: number) =>
    Promise.all(
      Array.from({ length: connections }, async () => {
        for (let made = 0; made < calls / connections; made++) {
          const status = await call(service, agent, key);
          if (status !== 402) throw new Error(`a call without a balance was answered ${status}`);
        }
      }),
    );
  await run(refusedCalls / 2);
  const before = processes.map(cpuMs);
  const startedAt = performance.now();
  await run(refusedCalls);
  const seconds = (performance.now() - startedAt) / 1_000;
  const each = processes.map(
    (one, at) => `${one.name} ${((cpuMs(one) - (before[at] ?? 0)) / refusedCalls).toFixed(2)} ms`,
  );
  agent.destroy();
  say(
    `402 for the balance: ${(refusedCalls / seconds).toFixed(0)} calls/s, processor time of a call: ${each.join(", ")}`,
  );
}

const piece = Buffer.alloc(64 * 1024, " ");

/** Sends all but the last byte, as far as the socket accepts it. */
async function stall(service: Service, key: string): Promise<Socket> {
  const socket = connect(portOf(service), "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${stalledBytes}\r\n\r\n`;
  socket.write(head);
  for (let sent = 0; sent < stalledBytes - piece.length && !socket.destroyed; sent += piece.length)
    if (!socket.write(piece))
      await new Promise<void>((resolve) => {
        const go = () => {
          socket.off("drain", go).off("close", go);
          resolve();
        };
        socket.on("drain", go).on("close", go);
      });
  return socket;
}

async function stalls(service: Service): Promise<void> {
  const funded = { usd: "100", limits: noLimits };
  const { key } = await openKey(service.admin, funded);
  const { key: other } = await openKey(service.admin, funded);
  const api = processOf(service, "api");
  const beforeBytes = residentBytes(api);
  const watched = watchMost(() => residentBytes(api));
  const sockets: Socket[] = [];
  const senders = 20;
  await Promise.all(
    Array.from({ length: senders }, async () => {
      for (let sent = 0; sent < stalledCallers / senders; sent++) sockets.push(await stall(service, key));
    }),
  );
  await wait(1_000);
  const mostBytes = watched();
  const agent = new Agent();
  const startedAt = performance.now();
  const statuses: number[] = [];
  for (let made = 0; made < 20; made++) statuses.push(await call(service, agent, other));
  const served = statuses.filter((status) => status === 200).length;
  const eachMs = ((performance.now() - startedAt) / statuses.length).toFixed(0);
  for (const socket of sockets) socket.destroy();
  say(
    `${stalledCallers} callers that stall after 24 MB: memory ${inMebi(beforeBytes)} MiB before, +${inMebi(mostBytes - beforeBytes)} MiB at most; ` +
      `${served} of 20 calls of another key served meanwhile, ${eachMs} ms each`,
  );
}

await runBench("bench-refusals", async (bench) => {
  const service = theService(bench);
  await refusals(service);
  await stalls(service);
});
