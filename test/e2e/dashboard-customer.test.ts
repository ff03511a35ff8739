import OpenAI from "openai";
import { expect, test } from "vitest";
import { formatUsd } from "../../shared/money/index.ts";
import { browserOfFile } from "../support/browser.ts";
import {
  dashboardOfFile,
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
  await pressByKeyboard(page, form.getByRole("button", { name: "Make the key" }));
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
