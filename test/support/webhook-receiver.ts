import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import OpenAI from "openai";
import { Webhook } from "standardwebhooks";
import { onTestFinished } from "vitest";
import { newPrivateKey, publicKeyOf } from "#secrets";
import { eventually } from "./service.ts";

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly id: string;
}

type Respond = (response: ServerResponse, webhook: ReceivedWebhook) => void;

/** An answer of this status. */
export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Respond =>
  (response) =>
    void response.writeHead(code, headers).end(`status ${code}`);

/** A receiver of webhooks on loopback. It answers 204 unless it was told otherwise. It ends with the test. */
export async function startReceiver(host = "127.0.0.1") {
  const received: ReceivedWebhook[] = [];
  const answers: Respond[] = [];
  let always: Respond = status(204);
  const server = createServer((request, response) => {
    const { headers, url = "" } = request;
    void text(request).then((body) => {
      const webhook = { path: url, headers, body, id: String(headers["webhook-id"]) };
      received.push(webhook);
      (answers.shift() ?? always)(response, webhook);
    });
  });
  // An idle connection must not be closed just as the next webhook is sent.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    received: received as readonly ReceivedWebhook[],
    /** The answers to the next webhooks, one each. */
    answerNext: (...next: Respond[]) => void answers.push(...next),
    answerAlways: (respond: Respond) => {
      always = respond;
    },
    /** Resolves with the webhook once it has arrived. */
    webhook: (at: number): Promise<ReceivedWebhook> => eventually(() => Promise.resolve(received[at])),
  };
}

export type WebhookReceiver = Awaited<ReturnType<typeof startReceiver>>;

/** A server on every address of loopback that accepts connections and never answers. */
export async function startDeadServer() {
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    open.add(
      socket
        .on("error", () => {})
        .on("close", () => open.delete(socket))
        .resume(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    /** The address of the nth receiver, which is a host of its own. */
    url: (n: number) =>
      `http://127.${1 + Math.floor(n / 62_500)}.${Math.floor(n / 250) % 250}.${1 + (n % 250)}:${port}`,
    open: () => open.size,
    close(): void {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}

/** Verifies the signature as both libraries do, and returns the event. */
export async function verified({ body, headers }: ReceivedWebhook, secret: string): Promise<unknown> {
  const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const event = new Webhook(secret).verify(body, plain);
  await new OpenAI({ apiKey: "none" }).webhooks.unwrap(body, plain, secret);
  return event;
}

/** The environment of a service that stores secrets, and sends webhooks to receivers of the test. */
export async function webhookEnvironment() {
  const privateKey = await newPrivateKey();
  return {
    SECRETS_PUBLIC_KEY: publicKeyOf(privateKey),
    SECRETS_PRIVATE_KEYS: privateKey,
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "100000",
  };
}
