import { expect, test } from "vitest";
import { outcomes, startFlights } from "../support/chaos-cache-setup.ts";
import { ask, fullCostUsd, never, restartEmpty, terminate } from "../support/chaos-setup.ts";
import { ownServers } from "../support/servers.ts";
import { type Client, eventually, ready, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";

const json = ask();
const silent = ask({ stream: true, messages: [{ role: "user", content: "Say nothing" }] });
const stream = ask({ stream: true });
/** The provider is silent in a JSON call, in a stream before its first event, and in one after four. */
const stuck = [
  { beforeHeaders: never },
  { beforeHeaders: never },
  { beforeEvent: { 4: never }, usage: false },
] as const;
const full = (count: number) => Array<string>(count).fill(`-${fullCostUsd}`);
/** The estimated cost of four events. */
const part = expect.stringMatching(/^-0\.0000[12]\d$/) as string;

/** One flight of each kind, whose followers have what its leader has. */
async function beginAll(flights: Awaited<ReturnType<typeof startFlights>>) {
  flights.provider.respond(...stuck);
  const begun = [await flights.begin(json), await flights.begin(silent), await flights.begin(stream)] as const;
  const { leader, near, far } = begun[2];
  await Promise.all([leader, near, ...far].map((caller) => caller.sees(4)));
  return begun;
}

test("the leaders' API is killed: followers elsewhere make their own calls, or their begun streams end with an error", async () => {
  const flights = await startFlights();
  const { api, provider } = flights;
  const begun = await beginAll(flights);
  api.kill("SIGKILL");
  expect(await Promise.all(begun.map(({ far }) => outcomes(far)))).toEqual([
    ["200 miss", "200 miss"],
    ["200 miss", "200 miss"],
    ["200 hit 4 no_capacity", "200 hit 4 no_capacity"],
  ]);
  expect(await Promise.all(begun.map(({ leader, near }) => outcomes([leader, near])))).toEqual([
    ["lost", "lost"],
    ["lost", "lost"],
    ["200 miss 4 broken", "200 hit 4 broken"],
  ]);
  await Promise.all(provider.requests.map(({ closed }) => closed));
  const { leaders, followers } = await flights.charges({ isLeased: true });
  // What the leader's caller had of the stream is charged.
  expect(leaders).toEqual([part, "0.00", "0.00"]);
  expect(followers).toEqual(full(4));
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([true, true, true, false, false, false, false]);
});

test("the leaders' worker is killed: they fail as without followers, who make their own calls", async () => {
  const flights = await startFlights(undefined, { worker: shortTimeouts });
  const { worker, provider, stores, env } = flights;
  const begun = await beginAll(flights);
  await spawnWorker(stores, env);
  worker.kill("SIGKILL");
  const answers = Promise.all(begun.map(({ leader, near, far }) => outcomes([leader, near, ...far])));
  expect(await answers).toEqual([
    ["503 no_capacity", "200 miss", "200 miss", "200 miss"],
    ["503 no_capacity", "200 miss", "200 miss", "200 miss"],
    ["200 miss 4 no_capacity", ...Array(3).fill("200 hit 4 no_capacity")],
  ]);
  expect(await flights.charges()).toEqual({ leaders: ["0.00", "0.00", "0.00"], followers: full(6) });
  expect(provider.requests).toHaveLength(3 + 6);
});

test.for([
  { signal: "SIGKILL", late: /^200 (miss|hit)$/ },
  // The log of the running stream lacks what came meanwhile, so its flight ends within 5 s.
  { signal: "SIGSTOP", late: /^200 (hit 4 no_capacity|miss|hit)$/ },
] as const)(
  "the cache's Redis gets $signal: calls run as without a cache until it is back",
  async ({ signal, late }) => {
    const { cache, stores } = await ownServers({ cache: true });
    const flights = await startFlights(stores);
    const { api, client, provider } = flights;
    const [gate, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    provider.respond({ beforeHeaders: gate.promise }, { beforeEvent: { 4: gate.promise, 8: end.promise } });
    const [whole, begun] = [await flights.begin(json), await flights.begin(stream)];
    await Promise.all([begun.leader, begun.near, ...begun.far].map((caller) => caller.sees(4)));

    await cache.kill(signal);
    const arriving = [api.client, client].flatMap((at) => [json, silent].map((body) => flights.follow(body, at)));
    const answers = Promise.all([[whole.near, ...whole.far], [begun.near, ...begun.far], arriving].map(outcomes));
    expect(await answers).toEqual([
      Array(3).fill("200 bypass"),
      Array(3).fill("200 hit 4 no_capacity"),
      Array(4).fill("200 bypass"),
    ]);
    gate.resolve();
    expect(await whole.leader.outcome).toBe("200 miss");
    await begun.leader.sees(8);
    await api.line(({ msg }) => msg === "a running call cannot be followed any more");

    if (signal === "SIGKILL") await cache.start();
    else await cache.kill("SIGCONT");
    const other = ask({ messages: [{ role: "user", content: "Is it back?" }] });
    for (const at of [api.client, client])
      await eventually(async () => (await flights.follow(other, at).outcome) === "200 hit");
    const callers = [api.client, client, client].map((at) => flights.follow(stream, at));
    for (const outcome of await outcomes(callers)) expect(outcome).toMatch(late);
    end.resolve();
    expect(await begun.leader.outcome).toBe("200 miss");
    const { leaders, followers } = await flights.charges();
    expect([leaders, followers.length]).toEqual([full(2), provider.requests.length - 2]);
  },
);

test("the queue's Redis is emptied: leaders fail, and their followers are answered or refused, and pay for no other call", async () => {
  const flights = await startFlights();
  const { provider, stores } = flights;
  const begun = await beginAll(flights);
  await restartEmpty(stores);
  const answers = Promise.all(begun.map(({ leader, near, far }) => outcomes([leader, near, ...far])));
  const [whole, [failed, ...own] = [], cut] = await answers;
  expect([whole?.[0], failed]).toEqual(["503 no_capacity", "503 no_capacity"]);
  expect(cut).toEqual(["200 miss 4 no_capacity", ...Array(3).fill("200 hit 4 no_capacity")]);
  const others = [...(whole?.slice(1) ?? []), ...own];
  for (const outcome of others) expect(outcome).toMatch(/^(200 miss|503 no_capacity)$/);
  await Promise.all(provider.requests.map(({ closed }) => closed));
  const { leaders, followers } = await flights.charges();
  expect(leaders).toEqual(["0.00", "0.00", "0.00"]);
  expect(followers.filter((amount) => amount !== "0.00")).toEqual(
    full(others.filter((outcome) => outcome === "200 miss").length),
  );
});

test("APIs get SIGTERM: their followers are answered in time or get a clear error, those of their leaders lose nothing", async () => {
  const flights = await startFlights(undefined, { api: { DRAIN_GRACE: "12" }, other: { DRAIN_GRACE: "12" } });
  const { api, other, provider, stores, env } = flights;
  const begun = await beginAll(flights);
  /** A JSON call and a stream that end while the API gets the signal. */
  const beginEnding = async (content: string, at: Client) => {
    const gate = Promise.withResolvers<void>();
    provider.respond({ beforeHeaders: gate.promise }, { beforeEvent: { 4: gate.promise } });
    const messages = [{ role: "user", content }];
    const bodies = [ask({ messages }), ask({ messages, stream: true })] as const;
    return { gate, running: [await flights.begin(bodies[0], at), await flights.begin(bodies[1], at)] };
  };
  const expectAnswers = async ({ gate, running }: Awaited<ReturnType<typeof beginEnding>>) => {
    gate.resolve();
    for (const { leader, near, far } of running)
      expect(await outcomes([leader, near, ...far])).toEqual(["200 miss", "200 hit", "200 hit", "200 hit"]);
  };

  const first = await beginEnding("The followers' API ends", other.client);
  await terminate(other);
  await expectAnswers(first);
  expect(await outcomes(begun.flatMap(({ far }) => far))).toEqual([
    ...Array(4).fill("503 no_capacity"),
    ...Array(2).fill("200 hit 4 no_capacity"),
  ]);
  expect(await other.exited).toBe(0);

  const { client } = await spawnApi(stores, env);
  await ready(client);
  const second = await beginEnding("The leaders' API ends", client);
  const far = await flights.join([json, silent, stream], client);
  await far[2]?.sees(4);
  await terminate(api);
  await expectAnswers(second);
  expect(await outcomes(begun.map(({ near }) => near))).toEqual([
    "503 no_capacity",
    "503 no_capacity",
    "200 hit 4 no_capacity",
  ]);
  expect(await outcomes(begun.map(({ leader }) => leader))).toEqual([
    "503 no_capacity",
    "503 no_capacity",
    "200 miss 4 no_capacity",
  ]);
  expect(await outcomes(far)).toEqual(["200 miss", "200 miss", "200 hit 4 no_capacity"]);
  expect(await api.exited).toBe(0);
  expect(await flights.charges({ at: client })).toEqual({
    leaders: [...full(4), "0.00", "0.00", "0.00"],
    followers: full(2),
  });
});

test("callers disconnect: work goes on while it is followed, at the leader's cost, and ends with the last who wants it", async () => {
  const flights = await startFlights();
  const { api, other, provider } = flights;
  const gate = Promise.withResolvers<void>();
  const stuckStream = { beforeEvent: { 4: never }, usage: false } as const;
  provider.respond({ beforeHeaders: gate.promise }, { beforeEvent: { 4: gate.promise } }, stuckStream, stuckStream);
  const followed = [await flights.begin(json), await flights.begin(stream)] as const;
  const alone = flights.lead(silent);
  const left = await flights.begin(ask({ stream: true, messages: [{ role: "user", content: "Leave" }] }));
  await Promise.all([...followed[1].far, alone, left.leader].map((caller) => caller.sees(4)));
  for (const { leader, near } of followed) for (const caller of [leader, near]) caller.disconnect();

  alone.disconnect();
  await provider.requests[2]?.closed;
  for (const caller of [left.leader, left.near, ...left.far]) caller.disconnect();
  // The leader's API looks for followers once a second.
  await provider.requests[3]?.closed;
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([false, false, true, true]);
  gate.resolve();
  for (const { far } of followed) expect(await outcomes(far)).toEqual(["200 hit", "200 hit"]);

  provider.respond(stuckStream);
  const dying = await flights.begin(ask({ stream: true, messages: [{ role: "user", content: "Die" }] }));
  await dying.leader.sees(4);
  for (const caller of [dying.leader, dying.near]) caller.disconnect();
  other.kill("SIGKILL");
  // Followers that have not been heard of for 5 s do not count.
  await provider.requests[4]?.closed;
  expect(await flights.charges({ at: api.client })).toEqual({ leaders: [part, part, part, ...full(2)], followers: [] });
});
