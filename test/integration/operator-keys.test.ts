import { beforeEach, expect, test } from "vitest";
import { mockError, startMockOpenai } from "../support/mock-openai.ts";
import type { Usual } from "../support/mock-provider.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { asking, entriesOf } from "../support/service-setup.ts";

const model = "openai/gpt-4o-mini";
const refusal = "Incorrect API key provided: sk-op***tor.";

/** A provider that accepts the operator's key, or does not, and counts the requests that check it. */
const provider = { accepts: true, checks: 0, answer: undefined as Usual | undefined };

const shared = ofFile(
  async (onEnd) => {
    const { clock, ...time } = movableClock();
    const openai = await startMockOpenai({
      routes: {
        answer({ method, path }) {
          const isCheck = method === "GET" && path === "/v1/models";
          if (isCheck) provider.checks += 1;
          if (!provider.accepts) return mockError(401, refusal, { code: "invalid_api_key" });
          return isCheck ? { body: { object: "list", data: [] } } : provider.answer;
        },
        reset() {},
      },
    });
    onEnd(() => openai.close());
    const env = { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: openai.url };
    return { ...time, openai, service: await startService(await testStores(), { clock, env, onEnd }) };
  },
  ({ openai }) => openai.reset(),
);

beforeEach(() => Object.assign(provider, { accepts: true, checks: 0, answer: undefined }));

interface Upstream {
  readonly id: string;
  readonly state: string;
  readonly workers: Readonly<Record<string, number>>;
  readonly addresses: readonly string[];
  readonly last_failure: { readonly message: string } | null;
}

async function upstream(): Promise<Upstream | undefined> {
  const { data } = await shared.service.admin<{ data: Upstream[] }>("GET", "/upstreams");
  return data.find(({ id }) => id === "openai");
}

const stateOf = async () => (await upstream())?.state;

test("models of a refused key leave the list, calls of them are 503 and not sent, and come back with the key", async () => {
  const { service, openai, advance } = shared;
  const customer = await service.account("5.00");
  const isListed = async () => {
    const listed = await Array.fromAsync(customer.openai.models.list());
    return listed.some(({ id }) => id === model);
  };
  const call = () => customer.openai.chat.completions.create(asking(model));
  await call();
  expect(await upstream()).toMatchObject({ state: "ready", addresses: [openai.url], last_failure: null });
  expect([await isListed(), provider.checks]).toEqual([true, 0]);

  provider.accepts = false;
  await expect(call()).rejects.toMatchObject({ status: 502 });
  await expect.poll(stateOf).toBe("key refused");
  expect(await upstream()).toMatchObject({
    workers: { ready: 0, open: 0, key_refused: 1, no_key: 0 },
    last_failure: { message: expect.stringContaining("Incorrect API key provided") as string },
  });
  expect([await isListed(), provider.checks]).toEqual([false, 1]);
  const sent = openai.requests.length;
  await expect(call()).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  await expect(customer.openai.models.retrieve(model)).rejects.toMatchObject({ status: 404 });
  expect(openai.requests).toHaveLength(sent);
  expect((await entriesOf(service, customer)).filter(({ amount_usd }) => Number(amount_usd) !== 0)).toHaveLength(1);

  // Still refused at the first check after it, accepted at the next.
  advance(30_000);
  await expect.poll(() => provider.checks).toBe(2);
  expect(await stateOf()).toBe("key refused");
  provider.accepts = true;
  advance(30_000);
  await expect.poll(stateOf).toBe("ready");
  expect(await isListed()).toBe(true);
  await call();
});

test("no caller can make the service believe that its key is refused", async () => {
  const { service, advance } = shared;
  const customer = await service.account("5.00");
  // A key is not checked more than once in this time.
  advance(30_000);
  // Google's text for a bad key, quoted in an answer about the caller's own input.
  provider.answer = mockError(400, "Invalid value: 'API key not valid. Please pass a valid API key.'");
  for (let n = 0; n < 8; n++)
    await expect(customer.openai.chat.completions.create(asking(model))).rejects.toMatchObject({ status: 502 });
  await expect.poll(() => provider.checks).toBe(1);
  provider.answer = undefined;
  await customer.openai.chat.completions.create(asking(model));
  expect(await stateOf()).toBe("ready");
});
