import { parseArgs } from "node:util";
import { chatCodec } from "#formats";
import { type OrderDeps, orderUpstreams } from "../../api/admission/order-upstreams.ts";
import { catalogWith, textModel } from "../support/catalog-fixture.ts";
import { promptCache } from "../support/prompt-cache.ts";
import { table, times } from "./table.ts";

/**
 * node test/bench/conversations.ts [--conversations 10000]
 *
 * Conversations of 50 turns at 4 upstreams of equal weight that each have a prompt cache, drawn for each call and by
 * conversation: cached tokens as a part of what one upstream alone would have, tokens that were not cached as a multiple, and
 * what it costs admission to place a call.
 */
const { values } = parseArgs({ options: { conversations: { type: "string", default: "10000" } } });
const turns = 50;
const sampled = 200;
const rounds = 5;
const ids = Array.from({ length: Number(values.conversations) }, (_, n) => `conversation ${n}`);

const { catalog, model: known } = catalogWith(textModel);
const names = ["alpha", "beta", "gamma", "delta"];
const model = { ...known, upstreams: names.map((upstream) => ({ upstream, model: "m", weight: 1 })) };
const deps: OrderDeps = {
  catalog,
  registry: { known: () => true, hasKey: () => true, upstream: () => "ready", speed: () => undefined },
  random: Math.random,
};
const system = "You are a patient assistant. ".repeat(200);
const request = (id: string, turn: number) => ({
  model: "m",
  messages: [
    { role: "system", content: system },
    ...Array.from({ length: turn + 1 }, (_, n) => [
      { role: "user", content: `${id}, question ${n}: ${"why is that so? ".repeat(20)}` },
      ...(n < turn ? [{ role: "assistant", content: "Because it always was. ".repeat(20) }] : []),
    ]).flat(),
  ],
});
const orderOf = (conversation?: () => string) =>
  (orderUpstreams(deps, model, { preferences: undefined, stream: false, conversation }) ?? names).map(String);

const ways = {
  "drawn for each call": (_id: string, _body: object) => orderOf(),
  "by `session_id`": (id: string) => orderOf(() => `acc_1\n${id}`),
  "by the opening": (_id: string, body: object) => {
    const { conversation } = chatCodec.parse(body, 0);
    return orderOf(conversation && (() => `acc_1\n${conversation()}`));
  },
};

function warmthOf(place: (id: string, body: object) => readonly string[]) {
  let cached = 0;
  let atOne = 0;
  let sent = 0;
  for (const id of ids.slice(0, sampled)) {
    const caches = new Map(names.map((name) => [name, promptCache()]));
    const one = promptCache();
    for (let turn = 0; turn < turns; turn++) {
      const body = request(id, turn);
      const [first = ""] = place(id, body);
      cached += caches.get(first)?.(body.messages).cached ?? 0;
      const whole = one(body.messages);
      atOne += whole.cached;
      sent += whole.prompt;
    }
  }
  return { cached: cached / atOne, uncached: (sent - cached) / (sent - atOne) };
}

/** Microseconds of processor time a call of this work, the least of several rounds over all conversations. */
function costOf(work: (id: string, n: number) => unknown): number {
  const measured = Array.from({ length: rounds }, () => {
    const before = process.cpuUsage();
    ids.forEach(work);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / ids.length;
  });
  return Math.min(...measured);
}

const bodies = ids.map((id) => request(id, 0));
const parsed = () => bodies.map((body) => chatCodec.parse(body, 0).conversation);
const hashed = Array.from({ length: rounds }, parsed);
let round = 0;
const costs = {
  "drawn for each call": costOf(() => orderOf()),
  "by `session_id`": costOf((id) => orderOf(() => `acc_1\n${id}`)),
  "by the opening": costOf((_, n) => {
    const identify = hashed[round]?.[n];
    if (n === ids.length - 1) round++;
    return orderOf(identify && (() => `acc_1\n${identify()}`));
  }),
};
const rows = Object.entries(ways).map(([way, place]) => {
  const { cached, uncached } = warmthOf(place);
  return [way, `${(100 * cached).toFixed(1)} %`, times(uncached), costs[way as keyof typeof costs].toFixed(1), "0"];
});
const head = ["upstream", "cached tokens, of one's", "not cached, of one's", "µs a call", "bytes in Redis"];
process.stdout.write(`${table(head, rows)}\n`);
