import { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import {
  callsOf,
  type ErrorBody,
  lost,
  path,
  type Reading,
  read,
  startProcesses,
  startProvider,
} from "./chaos-setup.ts";
import { mockText } from "./mock-openai.ts";
import { type Stores, testStores } from "./servers.ts";
import { type Client, type Environment, eventually, postWith, ready, shortApiTimeout, spawnApi } from "./service.ts";

/** A call that wants the response cache, while it runs. */
interface Caller {
  disconnect(): void;
  /** Resolves once this many events of its stream have arrived. */
  sees(count: number): Promise<void>;
  /**
   * `<status> <x-xm-cache>` for a whole answer, `<status> <code>` for an error, and `<status> <x-xm-cache> <events> <code>` for
   * a stream that ended with one (`broken` without one). `lost`: the connection ended without an answer.
   */
  readonly outcome: Promise<string>;
}

/** A leader and its followers. `near` is at the leader's API, `far` are at another. */
interface Flight {
  readonly leader: Caller;
  readonly near: Caller;
  readonly far: readonly Caller[];
}

export const outcomes = (callers: readonly Caller[]) => Promise.all(callers.map(({ outcome }) => outcome));

function call({ baseUrl }: Client, key: string, body: object): Caller {
  const leaving = new AbortController();
  // All keys of the account share its answers.
  const headers = { "x-xm-cache": "true", "x-xm-cache-scope": "account" };
  const answer = postWith(baseUrl, key)(path, body, { headers, signal: leaving.signal });
  const isStream = "stream" in body;
  const reading = isStream ? answer.then((response) => (response.ok ? read(response) : undefined)) : undefined;
  reading?.catch(() => {});
  return {
    disconnect: () => leaving.abort(),
    sees: async (count) => (await reading)?.sees(count),
    outcome: outcomeOf(answer, reading),
  };
}

async function outcomeOf(answer: Promise<Response>, reading: Promise<Reading | undefined> | undefined) {
  if (await lost(answer)) return "lost";
  const response = await answer;
  const head = `${response.status} ${response.headers.get("x-xm-cache")}`;
  const stream = await reading;
  if (!stream) {
    const { choices, error } = (await response.json()) as Partial<ErrorBody> & {
      choices?: [{ message: { content: string } }];
    };
    if (error) return `${response.status} ${error.code}`;
    return choices?.[0].message.content === mockText ? head : `${head} ${JSON.stringify(choices)}`;
  }
  const ended = await stream.ended;
  if (stream.done() && stream.text() === mockText) return head;
  const { code } = stream.events.at(-1)?.error ?? {};
  return `${head} ${stream.events.length - (code ? 1 : 0)} ${code ?? ended}`;
}

function cacheRedisOf({ CACHE_REDIS_URL = "" }: Stores): Redis {
  const redis = new Redis(CACHE_REDIS_URL).on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** The followers of all flights, as the cache counts them. */
async function countFollowers(redis: Redis): Promise<number> {
  const flights = await redis.keys("cache:*:flight");
  const counts = await Promise.all(flights.map((flight) => redis.hget(flight, "followers")));
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

/** A worker, the API of leaders, another API, and an account with a key for leaders and one for followers. */
export async function startFlights(
  given?: Stores,
  only: NonNullable<Parameters<typeof startProcesses>[2]> & { other?: Environment } = {},
) {
  const stores = given ?? (await testStores({ oneServer: true }));
  const { provider, env: reachesProvider } = await startProvider(shortApiTimeout);
  // A ping would begin the answer of a silent stream before it is known how it ends.
  const env = { ...reachesProvider, PING_INTERVAL_MS: "120000" };
  const [{ api, worker }, other] = await Promise.all([
    startProcesses(stores, env, only),
    spawnApi(stores, { ...env, ...only.other }),
  ]);
  const { client } = other;
  await ready(client);
  const customer = await client.account("1.00", { limits: { concurrent_requests: 100 } });
  const second = await client.admin<{ id: string; key: string }>("POST", `/accounts/${customer.id}/keys`, {});
  const redis = cacheRedisOf(stores);

  const lead = (body: object) => call(api.client, customer.key, body);
  const follow = (body: object, at = client) => call(at, second.key, body);

  /** Calls that follow a flight once this resolves. */
  async function join(bodies: readonly object[], ...at: readonly Client[]): Promise<Caller[]> {
    const followers = await countFollowers(redis);
    const joining = at.flatMap((each) => bodies.map((body) => follow(body, each)));
    await eventually(async () => (await countFollowers(redis)) === followers + joining.length);
    return joining;
  }

  return {
    stores,
    env,
    provider,
    api,
    worker,
    other,
    client,
    lead,
    follow,
    join,

    /** Starts equal calls. The first one has reached the provider when the others come. */
    async begin(body: object, at = client): Promise<Flight> {
      const index = provider.requests.length;
      const leader = lead(body);
      await provider.request(index);
      const [near, ...far] = await join([body], api.client, at, at);
      return { leader, near: near as Caller, far };
    },

    /**
     * Checks the books, then lists what the calls of each key cost. All calls that ran are in the ledger. The lease of a killed
     * API takes half a minute to end, and is not waited for.
     */
    async charges({ at = client, isLeased = false } = {}): Promise<{ leaders: string[]; followers: string[] }> {
      const calls = await eventually(async () => {
        const found = await callsOf(at, customer);
        return found.length >= provider.requests.length && found;
      });
      const check = await (isLeased ? at.check() : at.settled());
      expect(check).toMatchObject({ ok: true, difference_usd: "0.00", undecided: 0 });
      const [followers = [], leaders = []] = [true, false].map((isSecond) =>
        calls.filter(({ request }) => (request.key === second.id) === isSecond).map(({ amount_usd }) => amount_usd),
      );
      return { leaders: leaders.toSorted(), followers: followers.toSorted() };
    },
  };
}
