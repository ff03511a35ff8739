import { expect, test } from "vitest";
import { eventOf } from "../../api/routes/webhook-events.ts";
import type { EventType } from "../../shared/webhooks/index.ts";
import { managedAccount } from "../support/account-caller.ts";
import { eventually } from "../support/service.ts";
import { startReceiver, verified } from "../support/webhook-receiver.ts";
import { type WebhookBody, webhooksOfFile } from "../support/webhook-store-setup.ts";

const env = { NATIVE_FORMATS_ANY_MODEL: "true", WORKER_POOLS: "chat,batches,maintenance,webhooks" };
const running = webhooksOfFile(env, ["validate-batches", "enqueue-webhooks"]);

const dayMs = 86_400_000;
const line = (content: string, model = "local/chat") => ({
  model,
  max_tokens: 20,
  messages: [{ role: "user", content }],
});
const openai = (...bodies: readonly object[]) => ({
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  requests: bodies.map((body, at) => ({ custom_id: `${at}`, body })),
});
const [batches, messageBatches] = ["/batches", "/messages/batches"];

type Owner = Awaited<ReturnType<typeof open>>;

/** An account with an endpoint that gets all events, and its receiver. */
async function open(usd?: string) {
  const [owner, receiver] = [await managedAccount(running.service, usd), await startReceiver()];
  const endpoint = { url: receiver.url, events: ["*"] };
  const { secret } = (await owner.ask("POST", "/webhooks/endpoints", endpoint)).body as unknown as WebhookBody;
  return { ...owner, receiver, secret };
}

/** The event that has arrived, once its signature is verified. */
const arrived = async ({ receiver, secret }: Owner, at: number) => verified(await receiver.webhook(at), secret);

async function create({ ask }: Owner, path: string, body: object): Promise<string> {
  const created = await ask("POST", path, body);
  expect(created.status).toBe(200);
  return created.body.id;
}

/** The deliveries of a batch, with the events that they send. */
async function eventsOf({ ask }: Owner, id: string) {
  const { data } = (await ask("GET", `/webhooks/deliveries?object_id=${id}`)).body;
  const bodies = await Promise.all(
    data.map(async (each) => (await ask("GET", `/webhooks/deliveries/${each.id}`)).body["body"] as string),
  );
  return data.map((each, at) => ({ id: each.id, event: JSON.parse(bodies[at] ?? "{}") as WebhookBody }));
}

/** Resolves with the events of a batch once one of this type is recorded. */
const recorded = (owner: Owner, id: string, type: EventType) =>
  eventually(async () => {
    const events = await eventsOf(owner, id);
    return events.some(({ event }) => event["type"] === type) && events;
  });

const stored = () => running.mongo.db.collection<{ _id: string }>("batches");
const isNoted = async (id: string) => (await stored().findOne({ _id: id, eventDueAt: { $exists: false } })) !== null;
const makeDue = (id: string) => stored().updateOne({ _id: id }, { $set: { eventDueAt: new Date(0) } });

/** The event is recorded once, whether the process that ended the batch died after the record or before it. */
async function survivesDeaths(owner: Owner, id: string, type: EventType): Promise<void> {
  const before = await recorded(owner, id, type);
  await eventually(() => isNoted(id));
  await makeDue(id);
  await eventually(() => isNoted(id));
  expect(await eventsOf(owner, id)).toEqual(before);

  await running.mongo.db.collection("webhookDeliveries").deleteMany({ objectId: id, type });
  await running.mongo.db.collection("webhookEvents").deleteMany({ objectId: id, type });
  expect(await eventsOf(owner, id)).toHaveLength(before.length - 1);
  await makeDue(id);
  await eventually(() => isNoted(id));
  expect(new Set(await eventsOf(owner, id))).toEqual(new Set(before));
}

const cancel = (path: string) => async (owner: Owner, id: string) => {
  await eventually(async () => (await stored().findOne({ _id: id, status: "in_progress" })) !== null);
  expect((await owner.ask("POST", `${path}/${id}/cancel`)).status).toBe(200);
};

const slow = Array.from({ length: 200 }, () => line("slow:5000"));
const params = [line("Hello."), line("error:400")].map((each, at) => ({ custom_id: `${at}`, params: each }));
const ends: readonly (readonly [
  type: EventType,
  path: string,
  body: object,
  shown: object,
  meanwhile?: (owner: Owner, id: string) => Promise<void>,
])[] = [
  ["batch.completed", batches, openai(line("Hello."), line("error:400")), { status: "completed" }],
  ["batch.failed", batches, openai(line("Hello.", "no/such")), { status: "failed" }],
  ["batch.cancelled", batches, openai(...slow), { status: "cancelled" }, cancel(batches)],
  ["message_batch.ended", messageBatches, { requests: params }, { processing_status: "ended" }],
];

test.for(ends)(
  "%s has the batch as polling shows it, arrives signed, and is recorded once",
  async ([type, path, body, shown, meanwhile]) => {
    const owner = await open();
    const id = await create(owner, path, body);
    await meanwhile?.(owner, id);
    const [found, ...others] = await recorded(owner, id, type);
    const polled = (await owner.ask("GET", `${path}/${id}`)).body;
    expect(others).toEqual([]);
    expect(polled).toMatchObject(shown);
    expect(found?.event).toMatchObject({ object: "event", type, data: polled });
    expect(eventOf(type).parse(found?.event)).toEqual(found?.event);
    expect(await arrived(owner, 0)).toEqual(found?.event);
    await survivesDeaths(owner, id, type);
  },
);

test.for([
  [batches, openai(line("Hello."))],
  [messageBatches, { requests: params }],
] as const)("batch.paused of %s has the batch as polling shows it, and arrives signed", async ([path, body]) => {
  const owner = await open("0.000000001");
  const id = await create(owner, path, body);
  const [paused] = await recorded(owner, id, "batch.paused");
  const polled = (await owner.ask("GET", `${path}/${id}`)).body;
  expect(polled).toMatchObject({ x_paused: "insufficient_balance" });
  expect(paused?.event["data"]).toEqual(polled);
  expect(eventOf("batch.paused").parse(paused?.event)).toEqual(paused?.event);
  expect(await arrived(owner, 0)).toEqual(paused?.event);
});

// It moves the clock, after which signatures are too old or too new for their receivers.
test("batch.paused is recorded once while a batch stays paused, before that of its end", async () => {
  const owner = await open("0.000000001");
  const id = await create(owner, batches, openai(line("Hello.")));
  await recorded(owner, id, "batch.paused");
  // The batch is claimed again, and paused as before.
  running.advance(10_000);
  await eventually(async () => (await stored().findOne({ _id: id, dueAt: { $gt: new Date(running.now()) } })) !== null);
  await survivesDeaths(owner, id, "batch.paused");

  running.advance(dayMs);
  const all = await recorded(owner, id, "batch.expired");
  const types = all.map(({ event }) => event["type"]);
  expect([types.length, new Set(types)]).toEqual([2, new Set(["batch.expired", "batch.paused"])]);
  expect(all.find(({ event }) => event["type"] === "batch.expired")?.event["data"]).toEqual(
    (await owner.ask("GET", `${batches}/${id}`)).body,
  );
  await survivesDeaths(owner, id, "batch.expired");
});
