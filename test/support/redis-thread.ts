import {
  MessageChannel,
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from "node:worker_threads";
import { Redis } from "ioredis";

interface Question {
  readonly command: readonly string[];
  readonly answered: Int32Array<SharedArrayBuffer>;
  readonly port: MessagePort;
}

/** A thread with a connection of its own, which asks Redis while the thread of the test is blocked, like another process. */
export async function startRedisThread(url: string) {
  const thread = new Worker(new URL(import.meta.url), { workerData: url });
  await new Promise((resolve) => thread.once("message", resolve));
  return {
    /** Blocks until Redis has answered. */
    ask(...command: readonly string[]): unknown {
      const answered = new Int32Array(new SharedArrayBuffer(4));
      const { port1, port2 } = new MessageChannel();
      thread.postMessage({ command, answered, port: port2 } satisfies Question, [port2]);
      Atomics.wait(answered, 0, 0);
      return (receiveMessageOnPort(port1) as { message: unknown }).message;
    },
    close: () => thread.terminate(),
  };
}

if (parentPort && typeof workerData === "string") {
  const redis = new Redis(workerData);
  await redis.ping();
  const answer = async ({ command: [name = "", ...args], answered, port }: Question) => {
    port.postMessage(await redis.call(name, ...args));
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  };
  parentPort.on("message", (question: Question) => void answer(question));
  parentPort.postMessage("ready");
}
