import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile } from "../support/browser-screens.ts";
import { testAdminToken } from "../support/service.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

test("an operator records a refund to a payer, and the dialog says why another amount is refused", async () => {
  const { service, money } = shared;
  const memo = "memo-of-the-payment";
  await money.creditPayment({ memo, messageHash: "hash", nanoUsd: 40_000_000n, transaction: "6".repeat(88) });
  const { page } = await browser.open(service.baseUrl, { expectedErrors: /status of 409/ });
  await page.goto("/dashboard/operator/money");
  await page.getByLabel("API key").fill(testAdminToken);
  await page.keyboard.press("Enter");

  const record = page.getByRole("button", { name: `Record a refund of ${memo}` });
  await record.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Record a refund" });
  await dialog.getByText("Its payer can still use it.").waitFor();
  const amount = dialog.getByLabel("Amount in USD");
  expect(await amount.inputValue()).toBe("0.04");
  await amount.fill("0.05");
  await dialog.getByLabel("Transaction").fill("5".repeat(88));
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("The amount exceeds the available balance.").waitFor();
  await amount.fill("0.03");
  await dialog.getByLabel("Reason").fill("the model was down");
  await page.keyboard.press("Enter");
  // The message stays for five seconds.
  await Promise.all([dialog.waitFor({ state: "detached" }), page.getByText("$0.03 recorded as paid back").waitFor()]);
  expect(await page.evaluate("document.activeElement.ariaLabel")).toBe(`Record a refund of ${memo}`);
  const table = page.getByRole("table", { name: "Owed to payers" });
  await table.getByRole("cell", { name: "$0.01", exact: true }).waitFor();
  const { data } = await service.admin<{ data: unknown }>("GET", `/accounts/x402:${memo}/ledger?kind=payout`);
  expect(data).toMatchObject([{ amount_usd: "-0.03", transaction: "5".repeat(88), reason: "the model was down" }]);
});
