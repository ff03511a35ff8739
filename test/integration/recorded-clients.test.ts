import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import type { RecordedRequest, Recording } from "../clients/recording.ts";
import { formatsService } from "../support/formats-service.ts";
import { type Counted, sum, usageIn } from "../support/recorded-answers.ts";
import type { Client, Customer } from "../support/service.ts";
import { type Entry, entriesOf, nanoUsd } from "../support/service-setup.ts";

/** The requests of third-party clients: `npm run test:clients -- --record`. */
const folder = join(import.meta.dirname, "../clients/recorded");
const recordings = readdirSync(folder).map((file) => ({
  ...(JSON.parse(readFileSync(join(folder, file), "utf8")) as Recording),
  name: basename(file, ".json"),
}));
const served = formatsService();

test.each(recordings)("requests of $name $version are answered in its format and charged", async ({ requests }) => {
  const { service } = served;
  const customer = await service.account("1000");
  const counted = new Map<string, Counted>();
  const ask = async (request: RecordedRequest) => {
    const response = await send(service, customer, request);
    const text = await response.text();
    expect(response.status, `${JSON.stringify(request).slice(0, 1_000)}\n${text.slice(0, 1_000)}`).toBe(request.status);
    const usage = usageIn(request, text);
    if (usage) counted.set(response.headers.get("x-request-id") ?? "", usage);
  };
  await Promise.all(requests.map(ask));
  const prices = await pricesOf(service);
  const entries = await entriesOf(service, customer);
  const charged = entries.map((entry) => [entry.id, unitsOf(entry), -nanoUsd(entry.amount_usd)]);
  const expected = entries.map((entry) => [entry.id, counted.get(entry.id) ?? nothing, costOf(prices, entry)]);
  expect(charged).toEqual(expected);
  const ids = new Set(entries.map(({ id }) => id));
  expect([...counted.keys()].filter((id) => !ids.has(id))).toEqual([]);
  const rest = entries.reduce((total, { amount_usd }) => total + nanoUsd(amount_usd), nanoUsd("1000.00"));
  expect(nanoUsd(await customer.available())).toBe(rest);
});

function send({ baseUrl }: Client, customer: Customer, { method, path, key, headers, body, status }: RecordedRequest) {
  // The only recorded refusal of a key is that of an invalid one.
  const sent = status === 401 ? "live_wrong" : customer.key;
  const url = new URL(`${baseUrl}${path}`);
  if (key === "query") url.searchParams.set("key", sent);
  const isHeader = key !== "query" && key !== "none";
  return fetch(url, {
    method,
    headers: { ...headers, ...(isHeader && { [key]: key === "authorization" ? `Bearer ${sent}` : sent }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** The counts of refusals and of calls that only count tokens. */
const nothing: Counted = { input: 0, output: 0 };

/** The units of a ledger entry, in the terms of responses. */
function unitsOf({ request: { usage } }: Entry): Counted {
  const { image, character, output = 0, reasoning: _, ...inputs } = usage;
  if (image !== undefined) return { images: image };
  if (character !== undefined) return { characters: character };
  return { input: sum(inputs, ...Object.keys(inputs)), output };
}

/** In USD per million tokens, or per other unit. */
type Prices = ReadonlyMap<string, Readonly<Record<string, { readonly unit: string; readonly list_usd: string }>>>;

async function pricesOf({ baseUrl }: Client): Promise<Prices> {
  const { data } = (await (await fetch(`${baseUrl}/v1/models`)).json()) as {
    data: { id: string; x_pricing: Record<string, { unit: string; list_usd: string }> }[];
  };
  return new Map(data.map(({ id, x_pricing }) => [id, x_pricing]));
}

/** The list price of an entry's usage, in nano-USD, rounded once. */
function costOf(prices: Prices, { request: { model, usage } }: Entry): bigint {
  const million = 1_000_000n;
  // Reasoning is a part of the output, without a price of its own.
  const used = Object.entries(usage).filter(([key, count]) => count > 0 && key !== "reasoning");
  const millionths = used.reduce((total, [key, count]) => {
    const { unit = "", list_usd = "" } = prices.get(model)?.[key] ?? {};
    expect(`${model} ${key}: ${unit}`).toMatch(/: (1M_tokens|image|character)$/);
    return total + BigInt(count) * nanoUsd(list_usd) * (unit === "1M_tokens" ? 1n : million);
  }, 0n);
  return (millionths + million / 2n) / million;
}
