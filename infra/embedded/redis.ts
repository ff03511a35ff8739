import { connect } from "node:net";
import { createProgram, until } from "./program.ts";
import { openFolder, type Server, type ServerOptions, serverOf } from "./server.ts";

/** Redis or Valkey with an append-only file, as the queue needs it: nothing is ever evicted. */
export async function startRedis(options: ServerOptions): Promise<Server> {
  const folder = await openFolder(options);
  const settings = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
  const program = createProgram({
    name: "Redis",
    command: options.binary,
    args: [
      "--bind",
      "127.0.0.1",
      "--port",
      String(folder.port),
      "--dir",
      folder.data,
      ...settings,
      ...(options.args ?? []),
    ],
    env: process.env,
    output: folder.log,
    onSpawn: (pid) => folder.keep({ pid }),
    ready: (signal) => until(() => ping(folder.port), signal),
  });
  const server = serverOf(program, folder, { REDIS_URL: `redis://127.0.0.1:${folder.port}` });
  await server.start();
  return server;
}

/** A server that is still loading its data answers with an error instead of PONG. */
const ping = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer")));
    socket.once("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      if (data.toString() === "+PONG\r\n") resolve();
      else reject(new Error(data.toString()));
    });
  });
