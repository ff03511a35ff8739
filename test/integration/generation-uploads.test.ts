import { beforeAll, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { charges, drawing, images, media, pngOf, uploaded, wavOf } from "../support/generation-setup.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, startService } from "../support/service.ts";
import { asking, invalidValue, localModel, type Refusal, refusal, refusalOf } from "../support/service-setup.ts";

const day = 24 * 3_600_000;

/** A customer with an upload in every state, and an upload of another customer. */
interface There {
  readonly service: Client;
  readonly customer: Customer;
  readonly ids: Readonly<Record<"unknown" | "foreign" | "expired" | "deleted" | "pending" | "image" | "sound", string>>;
}
let there: There;

async function begun({ baseUrl }: Client, { key }: Customer): Promise<string> {
  const response = await fetch(`${baseUrl}/v1/uploads`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ bytes: 1_000, mime: "image/png" }),
  });
  return ((await response.json()) as { id: string }).id;
}

async function removed({ baseUrl }: Client, { key }: Customer, id: string): Promise<string> {
  await fetch(`${baseUrl}/v1/uploads/${id}`, { method: "DELETE", headers: { authorization: `Bearer ${key}` } });
  return id;
}

beforeAll(async () => {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const stops: (() => Promise<void>)[] = [];
  const service = await startService(await testStores(), { clock, onEnd: (stop) => stops.push(stop) });
  const [customer, other] = [await service.account("1"), await service.account("1")];
  const expired = await uploaded(service, customer, pngOf(3, 2));
  aheadMs = day + 1;
  const ids = {
    unknown: `upl_${"a".repeat(24)}`,
    foreign: await uploaded(service, other, pngOf(3, 2)),
    expired,
    deleted: await removed(service, customer, await uploaded(service, customer, pngOf(3, 2))),
    pending: await begun(service, customer),
    image: await uploaded(service, customer, pngOf(3, 2)),
    sound: await uploaded(service, customer, wavOf(1)),
  };
  there = { service, customer, ids };
  return async () => {
    for (const stop of stops) await stop();
  };
});

const refusals: Readonly<Record<Exclude<keyof There["ids"], "image" | "sound">, Refusal>> = {
  unknown: { status: 404, type: "not_found_error", code: "upload_not_found" },
  foreign: { status: 404, type: "not_found_error", code: "upload_not_found" },
  expired: { status: 410, type: "not_found_error", code: "upload_expired" },
  deleted: { status: 410, type: "not_found_error", code: "upload_deleted" },
  pending: invalidValue(null, /not complete/),
};

/** Every place where a request may name an upload. */
const places: readonly (readonly [param: string, path: string, body: (id: string, image: string) => object])[] = [
  ["image", images, (image) => drawing("x", { image })],
  ["image[1]", images, (id, image) => drawing("x", { image: [image, id] })],
  ["more.deep[0].file", images, (file) => drawing("x", { more: { deep: [{ file }] } })],
  ["input.image", media, (image) => ({ model: "local/video", input: { prompt: "x", duration: 1, image } })],
  ["input.file", media, (file) => ({ model: "local/transcription", input: { file } })],
  ["input.more[0]", media, (id) => ({ model: "local/video", input: { prompt: "x", duration: 1, more: [id] } })],
  ["input.prompt", media, (prompt) => ({ model: "local/video", input: { prompt, duration: 1 } })],
  [
    "messages[0].content[1].image_url.url",
    "/v1/chat/completions",
    (url) => ({
      ...asking(localModel),
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "x" },
            { type: "image_url", image_url: { url } },
          ],
        },
      ],
    }),
  ],
];

describe.each(Object.keys(refusals) as (keyof typeof refusals)[])("an upload that is %s", (state) => {
  test.each(places)("at %s: refused by name; no hold, no charge", async (param, path, body) => {
    const { service, customer, ids } = there;
    const before = await customer.available();
    const answer = await refusalOf(await customer.post(path, body(ids[state], ids.image)));
    expect(answer).toEqual(refusal({ ...refusals[state], param }));
    expect(answer.error.message).toContain(ids[state]);
    expect(await customer.available()).toBe(before);
    expect(await charges(customer)).toEqual([]);
    expect((await service.check()).ok).toBe(true);
  });
});

test.each<readonly [what: string, path: string, body: (ids: There["ids"]) => object, param: string]>([
  ["sound in the place of a image", images, ({ sound }) => drawing("x", { image: sound }), "image"],
  [
    "sound in the place of a video's image",
    media,
    ({ sound }) => ({ model: "local/video", input: { prompt: "x", duration: 1, image: sound } }),
    "input.image",
  ],
  [
    "a image in the place of a recording",
    media,
    ({ image }) => ({ model: "local/transcription", input: { file: image } }),
    "input.file",
  ],
  [
    "sound in the place of a chat's image",
    "/v1/chat/completions",
    ({ sound }) => ({
      ...asking(localModel),
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: sound } }] }],
    }),
    "messages[0].content[0].image_url.url",
  ],
])("%s: refused by name, no charge", async (_, path, body, param) => {
  const { service, customer, ids } = there;
  const before = await customer.available();
  const entries = (await customer.ledger("usage")).length;
  expect(await refusalOf(await customer.post(path, body(ids)))).toEqual(refusal(invalidValue(param, /kind/)));
  await expectNoHold(service, customer, before);
  // Only a field whose kind is fixed is checked before any work.
  expect(await customer.ledger("usage")).toHaveLength(entries + (path === media ? 1 : 0));
});

/** The pending upload keeps its own hold. */
async function expectNoHold(service: Client, customer: Customer, before: string) {
  await expect.poll(async () => (await service.check()).open_holds).toBe(1);
  expect(await customer.available()).toBe(before);
}

test("the first invalid upload is named", async () => {
  const { customer, ids } = there;
  const image = [ids.image, ids.deleted, ids.unknown];
  expect(await refusalOf(await customer.post(images, drawing("x", { image })))).toEqual(
    refusal({ ...refusals.deleted, param: "image[1]" }),
  );
});

test("an upload id in a prompt is only text", async () => {
  const { customer, ids } = there;
  const prompts = [`${ids.unknown}?`, `Draw ${ids.expired}`, `${ids.deleted}\n`];
  for (const prompt of prompts) expect((await customer.post(images, drawing(prompt))).status).toBe(200);
  // An image call's prompt is never interpreted as anything else.
  expect((await customer.post(images, drawing(ids.unknown))).status).toBe(200);
});

test("up to a hundred uploads in one request are accepted; more are refused by name", async () => {
  const { customer, ids } = there;
  const named = (count: number) => Array.from({ length: count }, (_, at) => `upl_${String(at).padStart(24, "0")}`);
  const ask = async (more: readonly string[]) => refusalOf(await customer.post(images, drawing("x", { more })));
  expect(await ask(named(100))).toEqual(refusal({ ...refusals.unknown, param: "more[0]" }));
  for (const count of [101, 40_000])
    expect(await ask(named(count))).toEqual(refusal(invalidValue("more[100]", /100 uploads/)));
  const content = Array.from({ length: 101 }, () => ({ type: "image_url", image_url: { url: ids.image } }));
  const chat = { ...asking(localModel), messages: [{ role: "user", content }] };
  expect(await refusalOf(await customer.post("/v1/chat/completions", chat))).toEqual(
    refusal(invalidValue("messages[0].content[100].image_url.url")),
  );
});
