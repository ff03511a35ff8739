import { randomBytes } from "node:crypto";
import OpenAI from "openai";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { createPermits } from "../../workers/webhooks/permits.ts";
import { sign } from "../../workers/webhooks/signature.ts";

const id = "whm_1";
const body = '{"id":"evt_1","type":"job.completed","data":{"text":"Grüße \u{1f44b}"}}';

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/javascript/src/index.test.ts */
test("the published vector has its signature", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const signature = sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, '{"test": 2432232314}');
  expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test("both libraries verify each secret's signature, and no other secret's or body's", async () => {
  const [current, old, other] = [1, 2, 3].map(() => `whsec_${randomBytes(32).toString("base64")}`) as [
    string,
    string,
    string,
  ];
  const timestamp = Math.floor(Date.now() / 1_000);
  const signed = { "webhook-id": id, "webhook-timestamp": String(timestamp) };
  const headers = { ...signed, "webhook-signature": sign([current, old], id, timestamp, body) };
  const { webhooks } = new OpenAI({ apiKey: "none" });
  for (const secret of [current, old]) {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    expect(await webhooks.unwrap(body, headers, secret)).toEqual(JSON.parse(body));
  }
  for (const [text, secret] of [
    [body, other],
    [body.replace("evt_1", "evt_2"), current],
  ] as const) {
    expect(() => new Webhook(secret).verify(text, headers)).toThrow("No matching signature");
    await expect(webhooks.unwrap(text, headers, secret)).rejects.toThrow("signature");
  }
});

/** Starts what is asked for, and tells who runs. */
function track(total: number) {
  const permits = createPermits({ total });
  const controller = new AbortController();
  const running = new Map<string, () => void>();
  return {
    permits,
    running: () => [...running.keys()].toSorted(),
    ask: async (name: string, host: string, isFailing = false) => {
      const [account = ""] = name.split("-");
      void permits.acquire({ account, host, isFailing }, controller.signal).then(
        (release) => running.set(name, release),
        () => running.set(`${name} gave up`, () => {}),
      );
      await Promise.resolve();
    },
    end: async (name: string) => {
      running.get(name)?.();
      running.delete(name);
      await Promise.resolve();
    },
    abort: async () => {
      controller.abort(new Error("shutdown"));
      await Promise.resolve();
    },
  };
}

test("half of the attempts are left to receivers that do not fail", async () => {
  const { ask, end, running, permits } = track(4);
  for (const name of ["a-1", "b-1", "c-1", "d-1"]) await ask(name, `${name}.example.com`, true);
  expect(running()).toEqual(["a-1", "b-1"]);
  await ask("e-1", "e.example.com");
  await ask("f-1", "f.example.com");
  await ask("g-1", "g.example.com");
  expect(running()).toEqual(["a-1", "b-1", "e-1", "f-1"]);
  // A receiver that does not fail goes before those that wait longer.
  await end("a-1");
  expect(running()).toEqual(["b-1", "e-1", "f-1", "g-1"]);
  await end("e-1");
  expect(running()).toEqual(["b-1", "c-1", "f-1", "g-1"]);
  expect([permits.running(), permits.waiting()]).toEqual([4, 1]);
});

test("accounts with fewer attempts go first, whoever has waited longer", async () => {
  const { ask, end, running } = track(2);
  for (const name of ["a-1", "a-2", "a-3", "a-4", "b-1"]) await ask(name, `${name}.example.com`);
  expect(running()).toEqual(["a-1", "a-2"]);
  await end("a-1");
  expect(running()).toEqual(["a-2", "b-1"]);
  await end("b-1");
  expect(running()).toEqual(["a-2", "a-3"]);
});

test("a host gets 20 attempts at once, over all accounts, and does not hold up other hosts", async () => {
  const { ask, end, running, abort } = track(100);
  for (let n = 0; n < 25; n++) await ask(`a${n}-1`, "one.example.com");
  expect(running()).toHaveLength(20);
  await ask("b-1", "other.example.com");
  expect(running()).toHaveLength(21);
  await end("a0-1");
  expect(running()).toContain("a20-1");
  await abort();
  expect(running().filter((name) => name.endsWith("gave up"))).toHaveLength(4);
});
