import { connect } from "node:net";
import type { HostileInput, Send, Target } from "./input.ts";

const bytes = 64 * 1024;
const sockets = 50;

/** Each of many connections sends as many requests as Node reads at once. Resolves once all connections are cut. */
const pipelining =
  (request: (target: Target) => string) =>
  (target: Target): Send => {
    const one = request(target);
    const text = one.repeat(bytes / one.length);
    const { hostname, port } = new URL(target.url);
    return async () => {
      const cut = Array.from({ length: sockets }, async () => {
        const socket = connect(Number(port), hostname).on("error", () => {});
        socket.resume().write(text);
        await new Promise((resolve) => socket.once("close", resolve));
      });
      await Promise.all(cut);
      return (await fetch(`${target.url}/healthz`)).status;
    };
  };

const get = (path: string) => () => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const body = JSON.stringify({ model: "local/chat", messages: [{ role: "user", content: "Hi" }] });

const requests: readonly (readonly [name: string, request: (target: Target) => string])[] = [
  ["documents", get("/openapi.json")],
  ["pages", get("/docs/swagger-ui-bundle.js")],
  ["model lists", get("/v1/models")],
  ["addresses that do not exist", get("/none")],
  ["requests without a key", get("/v1/usage")],
  [
    "paid calls",
    ({ key }) =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  ],
];

export const pipelinedInputs: readonly HostileInput[] = requests.map(([name, request]) => ({
  kind: "pipelined",
  name: `64 KB of ${name} on each of ${sockets} connections`,
  prepare: pipelining(request),
}));
