import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { setup, start } from "../support/admin-cli.ts";

test("the overview is shown once, or again and again until Ctrl-C, which ends it cleanly", async () => {
  const { server, env, admin } = await setup();
  server.counter.answered(200);
  server.counter.charged(2_500_000_000n);
  await server.flush();
  const once1 = await admin("overview");
  expect(once1).toMatchObject({ code: 0, err: "" });
  expect(once1.out).toMatch(/^last hour +1 +0 +0 +2\.50$/m);
  expect(once1.out).toMatch(/^chat +0 +0 +0 +0 +-$/m);
  expect(once1.out).toMatch(/s3 DOES NOT ANSWER/);
  expect(once1.out).toMatch(/^holds +not counted: no maintenance worker$/m);

  const child = start(["overview", "--watch"], env);
  onTestFinished(() => void child.kill("SIGKILL"));
  const errors = text(child.stderr);
  let shown = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    // No control sequences without a terminal.
    expect(line.includes("\u001b")).toBe(false);
    if (line.startsWith("last hour") && ++shown === 2) child.kill("SIGINT");
  }
  const [code] = child.exitCode === null ? ((await once(child, "close")) as [number]) : [child.exitCode];
  expect([shown, code, await errors]).toEqual([2, 0, ""]);
});

test("watching a service that refuses the token ends with its message", async () => {
  const { admin } = await setup();
  expect(await admin("overview", "--watch", "--token", "wrong")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Missing or invalid admin token."),
  });
});

test("the audit log, workers, upstreams and holds are tables", async () => {
  const { server, admin, json } = await setup();
  const account = await json("accounts", "create", "--name", "acme");
  await json("credits", "add", account.id, "5");
  await admin("accounts", "update", account.id, "--freeze");
  const log = (await admin("audit", "list")).out.split("\n");
  expect(log[0]).toMatch(/^TIME \(UTC\) +WHO +ACTION +RESULT +TARGETS +CHANGES +ID$/);
  expect(log[1]).toMatch(new RegExp(`admin  PATCH /accounts/{id} +200 +${account.id} +{"frozen":true}`));
  const credits = await admin("audit", "list", "--action", "POST /accounts/{id}/credits", "--from", "2020-01-01");
  expect(credits.out.trimEnd().split("\n")).toHaveLength(2);
  expect((await admin("audit", "list", "--to", "2020-01-01T00:00:00Z")).out).toBe("None.\n");
  expect(await admin("audit", "list", "--from", "monday")).toMatchObject({ code: 1, out: "" });

  expect((await admin("workers", "list")).out).toBe("None.\n");
  expect((await admin("upstreams", "list")).out).toMatch(/^local +local +no key +ready 0, open 0, no_key 0 +\d+$/m);
  expect((await admin("holds", "list")).out).toBe("None.\n");
  await admin("accounts", "update", account.id, "--unfreeze");
  const held = { account: account.id, requestId: newRequestId(), maxNanoUsd: 2_000_000n, minNanoUsd: 2_000_000n };
  await server.money.hold({ ...held, expiresAt: Date.now() + 60_000 });
  expect((await admin("holds", "list")).out).toMatch(
    new RegExp(`^${held.requestId}  hold  ${account.id}  0\\.002 `, "m"),
  );
});

test("a check of many accounts says how far it is, and sums its parts", async () => {
  const { server, admin } = await setup();
  const accounts = Array.from({ length: 6_000 }, (_, n) => ({
    _id: `acct_${String(n).padStart(20, "0")}`,
    name: "acme",
    tier: "standard",
    frozen: false,
    // Two accounts have money without a ledger entry, one in each part.
    available: n === 5 || n === 5_500 ? 1n : 0n,
    held: 0n,
    holds: {},
    openHolds: 0,
    createdAt: new Date(),
  }));
  await server.mongo.connection.collection<{ _id: string }>("accounts").insertMany(accounts);
  const { code, out, err } = await admin("ledger", "check");
  expect(err).toBe("5000 of about 6000 accounts\n");
  expect(out).toMatch(/^accounts +6000$/m);
  expect(out).toMatch(/^difference_usd +0\.000000002$/m);
  expect(code).toBe(1);
});
