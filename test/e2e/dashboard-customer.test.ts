import OpenAI from "openai";
import { expect, test } from "vitest";
import { formatUsd } from "../../shared/money/index.ts";
import { browserOfFile } from "../support/browser.ts";
import {
  dashboardOfFile,
  faultsOf,
  figure,
  moneyShown,
  pressByKeyboard,
  signedIn,
  signedOut,
  tabTo,
} from "../support/browser-screens.ts";
import { asking, entriesOf, localModel, nanoUsd } from "../support/service-setup.ts";
import { payUrl } from "../support/topups-setup.ts";
import { startPaid } from "../support/x402-setup.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

test("a user signs in by keyboard alone, creates a key, which works within its budget, and revokes it", async () => {
  const { service } = shared;
  const { page, own } = await signedOut(browser, service);
  await tabTo(page, page.getByLabel("API key"));
  await page.keyboard.type(own.key);
  await pressByKeyboard(page, page.getByRole("button", { name: "Sign in" }));
  await page.getByText("No calls yet. Here is one:").waitFor();
  await pressByKeyboard(page, page.getByRole("link", { name: "Keys", exact: true }), "Shift+Tab");
  await page.getByRole("heading", { name: "Keys", level: 1 }).and(page.locator(":focus")).waitFor();

  const opener = page.getByRole("button", { name: "New key" });
  const isBack = () => opener.and(page.locator(":focus")).waitFor();
  await pressByKeyboard(page, opener);
  const form = page.getByRole("dialog", { name: "New key" });
  await tabTo(page, form.getByLabel("Budget in USD"));
  await page.keyboard.press("Escape");
  await form.waitFor({ state: "detached" });
  await isBack();

  await page.keyboard.press("Enter");
  await tabTo(page, form.getByLabel("Name", { exact: true }));
  await page.keyboard.type("tiny");
  await tabTo(page, form.getByLabel("Budget in USD"));
  await page.keyboard.type("0.0001");
  await pressByKeyboard(page, form.getByRole("button", { name: "Create key" }));
  const made = page.getByRole("dialog", { name: "Copy the key now" });
  const secret = /live_[0-9A-Za-z]{40}/.exec((await made.textContent()) ?? "")?.[0] ?? "";
  const client = new OpenAI({ apiKey: secret, baseURL: `${service.baseUrl}/v1`, maxRetries: 0 });
  const { usage } = await client.chat.completions.create({ ...asking(localModel), max_tokens: 2 });
  expect(usage).toMatchObject({ cost_usd: expect.stringMatching(/^0\.0/) });
  const beyond = client.chat.completions.create({ ...asking(localModel), max_tokens: 1_000 });
  await expect(beyond).rejects.toMatchObject({ status: 402, code: "budget_exceeded" });

  await pressByKeyboard(page, made.getByRole("button", { name: "I have it" }));
  await made.waitFor({ state: "detached" });
  await isBack();
  expect(await page.content()).not.toContain(secret);
  await page.reload();
  const row = page.getByRole("row", { name: /tiny/ });
  await row.getByRole("progressbar").waitFor();
  await pressByKeyboard(page, page.getByRole("button", { name: "Revoke tiny" }));
  const revoke = page.getByRole("dialog").getByRole("button", { name: /^Revoke/ });
  // It waits until the page knows whether this is the last key that can manage the account.
  await expect.poll(() => revoke.isEnabled()).toBe(true);
  await pressByKeyboard(page, revoke);
  await row.getByText("Revoked").waitFor();
  await expect(client.chat.completions.create(asking(localModel))).rejects.toMatchObject({ status: 401 });
});

test("spend by day equals the ledger's, to the last digit, and so do the requests that a filter selects", async () => {
  const { service, money } = shared;
  const { page, customer } = await signedIn(browser, service);
  const { openai } = customer;
  for (const content of ["Hello!", "Hello there, again!"])
    await openai.chat.completions.create(asking(localModel, content));
  await expect(openai.chat.completions.create(asking(localModel, "error:400"))).rejects.toMatchObject({ status: 400 });
  await openai.embeddings.create({ model: "local/embeddings", input: "Some more words" });
  const entries = await entriesOf(service, customer);
  const spent = (model?: string) =>
    entries
      .filter(({ request }) => model === undefined || request.model === model)
      .reduce((sum, { amount_usd }) => sum - nanoUsd(amount_usd), 0n);
  expect(nanoUsd("5.00") - nanoUsd(await customer.available())).toBe(spent());
  await money.sumUsage();

  await page.reload();
  const available = moneyShown(await customer.available());
  await expect.poll(() => figure(page, "Available").textContent()).toBe(available);
  await page.getByRole("button", { name: "Table" }).click();
  const table = page.getByRole("table", { name: "Spend by day" });
  const sums = [spent(localModel), spent("local/embeddings")].map((sum) => moneyShown(formatUsd(sum)));
  expect(await table.getByRole("columnheader").allTextContents()).toEqual([
    "Day (UTC)",
    localModel,
    "local/embeddings",
    "Calls",
    "Total",
  ]);
  expect(await table.locator("tfoot td").allTextContents()).toEqual([
    "Sum",
    ...sums,
    "4",
    moneyShown(formatUsd(spent())),
  ]);

  await page.getByRole("link", { name: "Requests" }).first().click();
  const rows = page.getByRole("table", { name: "Requests, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(4);
  const costs = await rows.locator("td:last-child").allTextContents();
  expect(costs).toEqual(entries.map(({ amount_usd }) => moneyShown(amount_usd)));
  await page.getByLabel("Model").selectOption(localModel);
  await expect.poll(() => rows.count()).toBe(3);
  await page.getByLabel("Status").selectOption("succeeded");
  await expect.poll(() => rows.count()).toBe(2);
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ status: "succeeded", model: localModel });
  await page.reload();
  await rows.first().waitFor();
  expect(await rows.count()).toBe(2);
  expect(await page.getByLabel("Model").inputValue()).toBe(localModel);
  expect(await page.getByLabel("Status").inputValue()).toBe("succeeded");
  await page.getByLabel("Status").selectOption("cancelled");
  await page.getByText("No request matches").waitFor();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect.poll(() => rows.count()).toBe(4);
  expect(new URL(page.url()).search).toBe("");
});

test("a top-up is paid on chain while the page waits, until it says completed", async () => {
  const { service, chain } = await startPaid();
  const { page } = await signedIn(browser, service);
  await page.getByRole("link", { name: "Top up" }).first().click();
  await page.getByLabel("Amount in USD").fill("2.5");
  await page.getByRole("button", { name: "Show the QR code" }).click();
  const link = page.getByRole("link", { name: "Open in a wallet" });
  await page.getByRole("img", { name: /^QR code/ }).waitFor();
  await payUrl(chain, await chain.wallet("3.00", { sol: 1n }), (await link.getAttribute("href")) ?? "");
  await page.getByText("It is on the balance.").waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await expect.poll(() => figure(page, "Available").textContent()).toBe("$7.50");
});

test("a customer finds why a request failed, what another cost and made, and both in the statement and the invoice", async () => {
  const { service, money } = shared;
  const { page, customer } = await signedIn(browser, service, { viewport: { width: 1_440, height: 900 } });
  const { openai } = customer;
  const failed = openai.chat.completions.create(asking(localModel, "error:429"));
  const refused = await failed.then(
    () => undefined,
    (error: { requestID: string; message: string }) => error,
  );
  const answered = await openai.chat.completions.create(asking(localModel));
  await openai.images.generate({ model: "local/image", prompt: "A sunrise" });
  const entries = await entriesOf(service, customer);
  const cost = formatUsd(entries.reduce((sum, { amount_usd }) => sum - nanoUsd(amount_usd), 0n));

  await money.sumUsage();

  // The id is what a program's log has: of the answer, or of the request that failed.
  await page.getByRole("link", { name: "Requests", exact: true }).click();
  await page.getByLabel("Find by id").fill(answered.id);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "What it cost" }).waitFor();
  const charged = entries.find(({ request }) => request.model === localModel && request.status === "succeeded");
  await page.getByText(charged?.id ?? "no entry", { exact: true }).waitFor();
  const total = page.getByRole("table", { name: "Cost of the request" }).locator("tfoot td").last();
  expect(await total.textContent()).toBe(moneyShown(charged?.amount_usd ?? ""));

  await page.getByRole("link", { name: "All requests" }).click();
  const rows = page.getByRole("table", { name: "Requests, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(3);
  // The whole row is the link.
  await rows.filter({ hasText: "rate_limit_exceeded" }).click();
  await page.getByText(refused?.requestID ?? "none", { exact: true }).waitFor();
  await page.getByText(refused?.message.replace(/^429 /, "") ?? "none", { exact: true }).waitFor();
  await page.getByText(/^What to do:/).waitFor();
  await page.getByText("Nothing was charged").waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.goBack();
  await rows.filter({ hasText: "local/image" }).click();
  const made = page.locator("section").filter({ has: page.getByRole("heading", { name: "Files it made" }) });
  await made.getByRole("img").waitFor();

  await page.getByRole("link", { name: "Statement" }).click();
  const lines = page.getByRole("table", { name: "Changes of the balance" }).locator("tbody tr");
  await expect
    .poll(() => lines.locator("td:nth-child(2)").allTextContents())
    .toEqual(["Credit", "Charges of 3 calls and uploads"]);
  expect(await lines.locator("td:nth-child(3)").allTextContents()).toEqual(["$5.00", `-${moneyShown(cost)}`]);
  expect(await lines.last().locator("td:last-child").textContent()).toBe(moneyShown(await customer.available()));
  await lines.getByRole("link", { name: "3 calls and uploads" }).click();
  await expect.poll(() => rows.count()).toBe(3);

  await page.getByRole("link", { name: "Invoices" }).click();
  await page.getByRole("heading", { name: "Invoice, not final yet" }).waitFor();
  const bill = page.getByRole("table", { name: "Charges of the month" });
  expect(await bill.locator("tfoot td:last-child").textContent()).toBe(moneyShown(cost));
  await page.getByRole("button", { name: "Billing details" }).click();
  const details = page.getByRole("dialog", { name: "Billing details" });
  await details.getByLabel("Name").fill("Acme Ltd");
  await details.getByLabel("Address").fill("2 Low Street\nLondon");
  await details.getByRole("button", { name: "Save" }).click();
  await page.getByText("Acme Ltd").waitFor();
  // Only the document is printed.
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("button", { name: "Billing details" }).isVisible()).toBe(false);
  expect(await page.getByRole("link", { name: "Invoices" }).isVisible()).toBe(false);
  expect(await bill.isVisible()).toBe(true);
});
