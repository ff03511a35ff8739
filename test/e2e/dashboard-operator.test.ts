import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, figure, pressByKeyboard, tabTo } from "../support/browser-screens.ts";
import { captureOf, held, holdOf } from "../support/money-setup.ts";
import { type Customer, testAdminToken } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";

const tokenOfAnn = "token-of-ann-01234567890123456789";

const browser = browserOfFile();
const shared = dashboardOfFile({ ADMIN_TOKENS: `ann:${tokenOfAnn}` });

type Options = Parameters<typeof browser.open>[1];

async function signedIn(token = testAdminToken, options?: Options): Promise<Page> {
  const { page } = await browser.open(shared.service.baseUrl, options);
  page.setDefaultTimeout(60_000);
  await page.goto("/dashboard/operator");
  await page.getByLabel("API key").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  return page;
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true });

test("an operator makes, credits and freezes an account, by keyboard alone, and the audit log names who did it", async () => {
  const { service } = shared;
  const page = await signedIn(tokenOfAnn, { expectedErrors: /status of 409/ });
  await pressByKeyboard(page, page.getByRole("link", { name: "Accounts" }), "Shift+Tab");
  // An empty list has this button too.
  await pressByKeyboard(page, page.locator("header").getByRole("button", { name: "New account" }));
  await tabTo(page, page.getByLabel("Name", { exact: true }));
  await page.keyboard.type("Acme Ltd");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Acme Ltd" }).waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";

  await pressByKeyboard(page, button(page, "Credit"));
  await tabTo(page, page.getByLabel("Amount in USD"));
  await page.keyboard.type("12.345678901");
  await tabTo(page, page.getByLabel("Reason"));
  await page.keyboard.type("invoice 7");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await button(page, "Credit").and(page.locator(":focus")).waitFor();
  const account = await service.admin<{ available_usd: string }>("GET", `/accounts/${id}`);
  expect(account.available_usd).toBe("12.345678901");
  await expect.poll(() => figure(page, "Available").textContent()).toBe("$12.345678901");

  // A refused transfer shows the reason, and the next step.
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("Amount in USD"));
  await page.keyboard.type("-99");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("The amount exceeds the available balance.").waitFor();
  await page.keyboard.press("Escape");

  await pressByKeyboard(page, button(page, "Freeze"));
  await pressByKeyboard(page, page.getByRole("dialog").getByRole("button", { name: "Freeze" }));
  await page.getByText("Frozen", { exact: true }).waitFor();

  await pressByKeyboard(page, page.getByRole("main").getByRole("link", { name: "Audit log" }));
  const rows = page.getByRole("table", { name: "Audit log" }).getByRole("row");
  await expect.poll(() => rows.count()).toBe(5);
  expect(await rows.nth(1).textContent()).toMatch(/ann.*Changed an account.*frozen: true.*200$/);
  expect(await rows.nth(2).textContent()).toMatch(/ann.*Credited.*amount_usd: -99.*409 conflict$/);
  expect(page.url()).toMatch(new RegExp(`/operator/audit\\?target=${id}$`));
  await page.reload();
  await expect.poll(() => rows.count()).toBe(5);
});

test("the overview counts a call, shows it in a table too, and its request by its id", async () => {
  const { service } = shared;
  const { openai, id } = await service.account("5");
  const { response } = await openai.chat.completions
    .create({ model: "local/chat", messages: [{ role: "user", content: "Hello!" }] })
    .withResponse();
  const page = await signedIn();
  await page.getByRole("button", { name: "Table" }).click();
  const table = page.getByRole("table", { name: "Calls by minute" });
  await expect.poll(() => table.getByRole("row").count()).toBeGreaterThan(1);

  await page.getByRole("link", { name: "Money" }).first().click();
  await page.getByRole("button", { name: "Check every entry" }).click();
  await page.getByText("The books agree", { exact: true }).waitFor();

  const requestId = response.headers.get("x-request-id") ?? "";
  await page.goto(`/dashboard/operator/requests/${requestId}`);
  await page.getByRole("table", { name: "Attempts" }).getByRole("cell", { name: "local", exact: true }).waitFor();
  await page.getByRole("link", { name: "test" }).click();
  await page.getByRole("heading", { name: "test", level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/dashboard/operator/accounts/${id}`);
});

test("filters apply at once, by choice and by name, and the address keeps them and what is shown", async () => {
  const { service } = shared;
  const { openai, id } = await service.account("5");
  await service.admin("PATCH", `/accounts/${id}`, { name: "Orchard" });
  const { response } = await openai.chat.completions.create(asking(localModel)).withResponse();
  await (await service.account("5")).openai.embeddings.create({ model: "local/embeddings", input: "Hello" });
  await service.settled();
  const page = await signedIn();
  await page.getByRole("link", { name: "Requests", exact: true }).click();
  const rows = page.getByRole("table", { name: "Requests" }).locator("tbody tr");
  await page.getByLabel("Model", { exact: true }).selectOption("local/embeddings");
  await expect.poll(() => rows.locator("text=local/chat").count()).toBe(0);
  await rows.getByText("local/embeddings").first().waitFor();
  await page.getByLabel("Model", { exact: true }).selectOption("");
  await page.getByLabel("Account, by name or id").fill("orchard");
  await page.keyboard.press("Enter");
  await rows.getByRole("link", { name: "Orchard" }).waitFor();
  expect(await rows.count()).toBe(1);
  await page.getByLabel("To (UTC)").fill(new Date().toISOString().slice(0, 10));
  await expect.poll(() => page.url()).toMatch(/\/operator\/requests\?account=orchard&to=\d{4}-\d\d-\d\d$/);
  await page.reload();
  await rows.getByRole("link", { name: response.headers.get("x-request-id") ?? "" }).waitFor();
  const saving = page.waitForEvent("download");
  await button(page, "Download CSV").click();
  const csv = await readFile(await (await saving).path(), "utf8");
  expect(csv.split("\r\n")).toEqual([
    expect.stringMatching(/^"id","ended_at","account"/),
    expect.stringContaining(id),
    "",
  ]);

  await page.goto("/dashboard/operator");
  await button(page, "Day").click();
  await button(page, "Table").click();
  await expect.poll(() => page.url()).toMatch(/\/operator\?within=last_day&as=table$/);
  await page.reload();
  await page.getByRole("table", { name: "Calls by hour" }).waitFor();
  await page.goto(`/dashboard/operator/accounts/${id}`);
  await button(page, "Ledger").click();
  await expect.poll(() => page.url()).toMatch(/\?part=ledger$/);
});

test("an operator finds the margin of a model and who spends most, edits that account's key, and signs in as it", async () => {
  const { service, money } = shared;
  const { id, openai } = await service.account("90000");
  await service.admin("PATCH", `/accounts/${id}`, { name: "Quarry" });
  const key = await service.admin<{ id: string }>("POST", `/accounts/${id}/keys`, {
    name: "owner",
    scopes: ["manage"],
  });
  for (const [model, cost, more] of [
    ["vendor/dear", 70_000_000_000_000n, { upstreamCostNanoUsd: 60_000_000_000_000n }],
    ["vendor/unknown", 2_000_000_000n, {}],
  ] as const)
    await money.charge(captureOf(await held(money, holdOf(id, cost)), cost, { model, ...more }));
  await openai.chat.completions.create(asking(localModel));
  await service.settled();
  await money.sumUsage();

  const page = await signedIn(tokenOfAnn);
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  const dear = page.getByRole("table", { name: "Models" }).getByRole("row", { name: /^vendor\/dear/ });
  await expect.poll(() => dear.textContent()).toBe("vendor/dear10$70,000.00$60,000.00$0.00$10,000.0014.3%");
  await page.getByText(/^Unknown for \$\d/).waitFor();
  await button(page, "Charged").click();
  await button(page, "Table").click();
  await page
    .getByRole("table", { name: "Charged by day" })
    .getByRole("columnheader", { name: "vendor/dear" })
    .waitFor();
  await button(page, "By account").click();
  await page
    .getByRole("table", { name: "Accounts" })
    .locator("tbody tr")
    .first()
    .getByRole("link", { name: "Quarry" })
    .waitFor();

  await page.getByRole("link", { name: "Accounts", exact: true }).click();
  const rows = page.getByRole("table", { name: "Accounts" }).locator("tbody tr");
  for (const order of ["Spend", "Balance"]) {
    await button(page, order).click();
    await rows.first().getByRole("link", { name: "Quarry" }).waitFor();
  }
  expect(await rows.first().textContent()).toContain("$70,002.00");
  await rows.first().getByRole("link", { name: "Quarry" }).click();
  await expect.poll(() => figure(page, "Spent in 30 days").textContent()).toMatch(/^\$70,002\.00/);

  await button(page, "Edit owner").click();
  await page.getByLabel("Budget in USD").fill("12.50");
  await button(page, "Save").click();
  await page
    .getByRole("row", { name: /^owner/ })
    .getByText(/\$12\.50 per month/)
    .waitFor();
  await button(page, "Sign-in link for owner").click();
  await button(page, "Create the link").click();
  const opening = page.context().waitForEvent("page");
  await page.getByRole("link", { name: "Open it here" }).click();
  const customer = await opening;
  await customer.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await customer.getByText("Quarry").first().waitFor();
  expect(customer.url()).not.toContain("code");
  await button(page, "I have it").click();
  await page.getByRole("main").getByRole("link", { name: "Audit log" }).click();
  const record = page.getByRole("table", { name: "Audit log" }).locator("tbody tr").first();
  await expect.poll(() => record.textContent()).toMatch(new RegExp(`ann.*Created a sign-in link.*${key.id}.*201$`));
});

/** Creates a batch of one call. */
async function createBatch(customer: Customer, content: string): Promise<string> {
  const body = { model: localModel, messages: [{ role: "user", content }] };
  const requests = [
    { custom_id: "a", body },
    { custom_id: "b", body },
  ];
  const wanted = { endpoint: "/v1/chat/completions", completion_window: "24h", requests };
  const created = await customer.post("/v1/batches", wanted);
  expect(created.status).toBe(200);
  return ((await created.json()) as { id: string }).id;
}

const screens = [
  "",
  "/accounts",
  "/usage",
  "/usage?by=account&as=table",
  "/requests",
  "/jobs",
  "/batches",
  "/money",
  "/workers",
  "/catalog",
  "/catalog?part=upstreams",
  "/audit",
];

test.each([
  [360, "dark"],
  [1_440, "light"],
] as const)("at %i px, %s, every screen and dialog fits, and axe finds nothing serious", async (width, colorScheme) => {
  const { service } = shared;
  const { openai, id } = await service.account("5");
  const { response } = await openai.chat.completions.create(asking(localModel)).withResponse();
  await service.settled();
  await createBatch(await service.account("0.000000001"), "Hello");
  const page = await signedIn(testAdminToken, { viewport: { width, height: 900 }, colorScheme });
  for (const screen of [
    ...screens,
    `/requests/${response.headers.get("x-request-id")}`,
    `/accounts/${id}`,
    `/accounts/${id}?part=usage`,
  ]) {
    await page.goto(`/dashboard/operator${screen}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect([screen, await faultsOf(page)]).toEqual([screen, []]);
  }
  for (const [screen, name] of [
    ["/accounts", "New account"],
    [`/accounts/${id}`, "Credit"],
    [`/accounts/${id}`, /^Edit /],
    [`/accounts/${id}`, "Freeze"],
  ] as const) {
    await page.goto(`/dashboard/operator${screen}`);
    await button(page, name).click();
    await page.getByRole("dialog").waitFor();
    expect([name, await faultsOf(page)]).toEqual([name, []]);
  }
});

// Its slow call holds money until the service ends.
test("the open batches of all accounts are listed by age with their state, and one is cancelled", async () => {
  const { service } = shared;
  const [poor, rich] = [await service.account("0.000000001"), await service.account("5")];
  const [paused, running] = [await createBatch(poor, "Hello"), await createBatch(rich, "slow:600000")];
  const page = await signedIn(tokenOfAnn);
  await page.getByRole("link", { name: "Batches", exact: true }).click();
  const rows = page.getByRole("table", { name: "Open batches" }).locator("tbody tr");
  // Those of other tests are older.
  await rows.last().getByText("In progress", { exact: true }).waitFor();
  await rows.filter({ hasText: paused }).getByText("Paused: insufficient balance").waitFor();
  await expect.poll(() => rows.last().textContent()).toMatch(/at api_\w+.*0 of 2/);

  await page.getByLabel("Account, by name or id").fill(rich.id);
  await page.keyboard.press("Enter");
  await expect.poll(() => rows.count()).toBe(1);
  await rows.locator(`a[title="${rich.id}"]`).waitFor();
  await pressByKeyboard(page, button(page, `Cancel ${running}`));
  await page.getByRole("dialog").getByText(running).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
  await rows.getByText("Cancelling", { exact: true }).waitFor();
  expect(await button(page, `Cancel ${running}`).count()).toBe(0);

  await page.goto(`/dashboard/operator/audit?target=${running}`);
  const record = page.getByRole("table", { name: "Audit log" }).locator("tbody tr");
  await record.first().waitFor();
  expect(await record.allTextContents()).toEqual([expect.stringMatching(/ann.*Cancelled a batch.*200$/)]);
});
