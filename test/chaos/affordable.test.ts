import { expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { formatUsd } from "#money";
import {
  ask,
  availableUsd,
  callsOf,
  outcomeOf,
  path,
  ready,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { mockUsage } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { eventually, shortApiTimeout, spawnApi } from "../support/service.ts";

const calls = 200;
const affordable = 20;

/** The hold of one call, and the usage that costs exactly that much. */
function mostOf(env: Readonly<Record<string, string>>) {
  const catalog = loadCatalog(env["CATALOG_FILE"]);
  const model = catalog.find("mock/chat");
  if (!model) throw new Error("no model");
  const body = ask();
  const size = {
    inputBytes: Buffer.byteLength(JSON.stringify(body)),
    messages: 1,
    parts: [],
    choices: 1,
    outputCap: body.max_tokens,
  };
  const { maxNanoUsd, inputTokens, outputCap } = catalog.bound(model, size, "standard");
  return { maxNanoUsd, usage: { prompt_tokens: inputTokens, completion_tokens: outputCap } };
}

test.for([
  { cost: "as much as was held", isMost: true },
  { cost: "less than was held", isMost: false },
])(
  "200 parallel calls through two API instances on a balance for 20, each costing $cost: exactly 20 run",
  async ({ isMost }) => {
    const stores = await testStores();
    const { provider, env } = await startProvider(shortApiTimeout);
    const { client } = await startProcesses(stores, env);
    const other = await spawnApi(stores, env);
    await ready(other.client);
    const most = mostOf(env);
    const balance = BigInt(affordable) * most.maxNanoUsd + 1n;
    const customer = await client.account(formatUsd(balance));

    // No response is sent before every call has arrived.
    const gate = Promise.withResolvers<void>();
    provider.always({ beforeHeaders: gate.promise, ...(isMost && { usage: most.usage }) });
    const bases = [client.baseUrl, other.client.baseUrl];
    let refused = 0;
    const outcomes = Array.from({ length: calls }, async (_, i) => {
      const answer = fetch(`${bases[i % 2]}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${customer.key}` },
        body: JSON.stringify(ask()),
      });
      const outcome = await outcomeOf(answer);
      if (outcome.status === 402) refused += 1;
      return outcome;
    });
    await eventually(() => refused === calls - affordable && provider.requests.length === affordable);
    gate.resolve();
    const ended = await Promise.all(outcomes);
    expect(ended.filter(({ status }) => status === 200)).toHaveLength(affordable);
    for (const { code } of ended.filter(({ status }) => status !== 200)) expect(code).toBe("insufficient_balance");

    await client.settled();
    expect(provider.requests).toHaveLength(affordable);
    expect(await callsOf(client, customer)).toHaveLength(affordable);
    const { prompt_tokens: input, completion_tokens: output } = isMost ? most.usage : mockUsage();
    const costNanoUsd = BigInt(input * 1_000 + output * 2_000);
    expect(costNanoUsd === most.maxNanoUsd).toBe(isMost);
    const remaining = balance - BigInt(affordable) * costNanoUsd;
    expect(await availableUsd(client, customer)).toBe(formatUsd(remaining));
  },
);
