import { GoogleGenAI, type HttpOptions } from "@google/genai";
import type { Served } from "./formats-service.ts";
import type { Client, Customer } from "./service.ts";

/** The official client with the customer's key. */
export const clientOf = (service: Client, { key }: Customer, httpOptions: HttpOptions = {}) =>
  new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: service.baseUrl, ...httpOptions } });

export async function newCaller({ service }: Pick<Served, "service">, usd = "10", httpOptions?: HttpOptions) {
  const customer = await service.account(usd);
  return { customer, client: clientOf(service, customer, httpOptions) };
}

/** A minimal request. */
export const asking = (model: string, contents = "Hello there") => ({ model, contents });
