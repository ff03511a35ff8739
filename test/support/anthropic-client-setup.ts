import Anthropic from "@anthropic-ai/sdk";
import { local, messagesProvider, relay, type Served } from "./formats-service.ts";
import type { Client, Customer } from "./service.ts";

/** The native model by its name and ours, and one whose provider speaks only chat. */
export const nativeModel = messagesProvider.model;
export const hostedModel = relay.model;
export const models = [local.model, nativeModel, hostedModel] as const;

/** The official client as its documentation sets it up, with this customer's key. */
export const clientOf = (service: Client, { key }: Customer, options: object = {}) =>
  new Anthropic({ apiKey: key, baseURL: service.baseUrl, maxRetries: 0, ...options });

/** A customer with a balance, and its client. */
export async function newCaller({ service }: Pick<Served, "service">, usd = "1") {
  const customer = await service.account(usd);
  return { customer, client: clientOf(service, customer) };
}

/** A minimal request. */
export const asking = <Model extends string>(model: Model, content = "Hello there") => ({
  model,
  max_tokens: 1_000,
  messages: [{ role: "user" as const, content }],
});

export const textOf = ({ content }: { content: readonly { type: string }[] }): string =>
  content.map((block) => ("text" in block ? String(block.text) : "")).join("");
