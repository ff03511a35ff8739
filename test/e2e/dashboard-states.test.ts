import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, signedIn } from "../support/browser-screens.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

async function opened(usd: string, expectedErrors?: RegExp) {
  const { service } = shared;
  const customer = await service.account(usd);
  const { page } = await browser.open(service.baseUrl, expectedErrors && { expectedErrors });
  page.setDefaultTimeout(60_000);
  const signIn = async (key: string) => {
    await page.getByLabel("API key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  };
  await page.goto("/dashboard");
  await signIn(customer.key);
  return { page, customer, signIn };
}

test("a session that ended says so, and the next one sees nothing of it", async () => {
  const { page, signIn } = await opened("71.00", /status of 401/);
  const other = await shared.service.account("5.00");
  await page.getByText("$71.00").first().waitFor();
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Models" }).click();
  await page.getByText("Your session has ended.").waitFor();
  // The response never comes until `answer`: before it, the page shows its cached data.
  const { promise: asked, resolve: answer } = Promise.withResolvers<void>();
  await page.route("**/v1/balance", async (route) => {
    await asked;
    await route.continue();
  });
  await page.getByLabel("API key").fill(other.key);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("No calls yet. Here is one:").waitFor();
  expect(await page.getByText("$71.00").count()).toBe(0);
  answer();
  await page.getByText("$5.00").first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(other.key);
});

test("without a connection the page says so and stays, and with it comes back by itself", async () => {
  const { page } = await opened("5.00", /ERR_INTERNET_DISCONNECTED|Failed to fetch|cannot be reached/);
  await page.getByText("No calls yet. Here is one:").waitFor();
  await page.context().setOffline(true);
  // Not loaded before, so its file is unavailable.
  await page.getByRole("link", { name: "Invoices" }).click();
  await page.getByRole("heading", { name: "This page failed" }).waitFor();
  await page.getByText("What you see may be old").waitFor();
  await page.context().setOffline(false);
  await page.getByText("What you see may be old").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("This key cannot see invoices").waitFor();
  expect(await page.getByRole("status").allTextContents()).toEqual([]);
});

test("a failed query leaves the previous data, and marks it as old", async () => {
  const { page } = await opened("5.00", /status of 502/);
  await page.getByText("$5.00").first().waitFor();
  await page.route("**/v1/balance", (route) => route.fulfill({ status: 502 }));
  await page.getByRole("link", { name: "Models" }).click();
  await page.getByRole("link", { name: "Overview" }).click();
  const said = () => page.getByRole("status").allTextContents();
  await expect.poll(said).toContain("Not up to date: The service answered 502.");
  expect(await page.getByText("$5.00").count()).toBeGreaterThan(0);
});

test("an account without a balance, and one that is frozen, read it on the page", async () => {
  const { service } = shared;
  const { page, customer } = await opened("0");
  const said = () => page.getByRole("status").allTextContents();
  await expect
    .poll(said)
    .toContain("Nothing is available, so calls that cost something are refused. Ask the operator for credit.");
  await service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
  await page.reload();
  const frozen = "This account is frozen: its calls are refused. Ask the operator to unfreeze it.";
  await expect.poll(said).toContain(frozen);
});

test("a service that cannot store provider keys says so, and who can change it", async () => {
  const { page } = await signedIn(browser, shared.service, { expectedErrors: /status of 501 .*\/providers$/ });
  await page.getByRole("link", { name: "Provider keys" }).click();
  await page
    .getByText("This service cannot store provider keys: its operator has not set SECRETS_PUBLIC_KEY.")
    .waitFor();
  await page.getByText("No provider keys yet").waitFor();
  expect(await page.getByRole("button", { name: "New provider key" }).count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
});
