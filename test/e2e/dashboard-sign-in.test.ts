import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { createSessions } from "../../api/sessions/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, signedIn } from "../support/browser-screens.ts";
import { browse } from "../support/dashboard-setup.ts";
import { testAdminToken } from "../support/service.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

const headings = (page: Page) => page.getByRole("heading", { level: 1 }).allTextContents();

test("a person signs in by pasting a key, stays signed in after a reload, and signs out", async () => {
  const { service } = shared;
  const { page, requests, own } = await signedIn(browser, service);
  await page.reload();
  await page.getByRole("navigation").first().waitFor();
  expect(
    await page.evaluate("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"),
  ).not.toContain("live_");
  const cookies = await page.context().cookies(`${service.baseUrl}/dashboard`);
  expect(cookies).toMatchObject([
    { name: "dashboard_session", path: "/dashboard", httpOnly: true, sameSite: "Strict" },
  ]);
  expect(await page.context().cookies(`${service.baseUrl}/v1/balance`)).toEqual([]);
  expect(requests.filter((url) => url.includes(own.key))).toEqual([]);

  const cookie = `dashboard_session=${cookies[0]?.value}`;
  const balance = () => browse(service, "GET", "/dashboard/api/v1/balance", { cookie });
  expect((await balance()).status).toBe(200);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect.poll(() => headings(page)).toEqual(["Sign in"]);
  expect(await page.context().cookies(`${service.baseUrl}/dashboard`)).toEqual([]);
  expect((await balance()).status).toBe(401);
  await page.goto("/dashboard/keys");
  await expect.poll(() => headings(page)).toEqual(["Sign in"]);
});

test("two tabs of one browser are an account and an operator, and a page of the other kind offers the switch", async () => {
  const { service } = shared;
  // The tabs ask once more when their sessions have ended.
  const { page, own, customer } = await signedIn(browser, service, { expectedErrors: /status of 401/ });
  await page.goto("/dashboard/operator/accounts");
  await expect.poll(() => headings(page)).toEqual(["This page is for operators"]);
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("button", { name: "Sign in as the operator" }).click();
  await page.getByLabel("API key").fill(testAdminToken);
  await page.keyboard.press("Enter");
  await expect.poll(() => headings(page)).toEqual(["Accounts"]);

  const other = await page.context().newPage();
  await other.goto("/dashboard/keys");
  await other.getByText("This session").waitFor();
  await other.getByRole("link", { name: "Switch to the operator admin" }).click();
  await expect.poll(() => headings(other)).toEqual(["Overview"]);
  expect(new URL(other.url()).pathname).toBe("/dashboard/operator");
  await other.getByRole("button", { name: "Sign out" }).click();
  await expect.poll(() => new URL(other.url()).pathname).toBe("/dashboard/");
  await expect.poll(() => headings(other)).toEqual(["Overview"]);
  await page.getByRole("link", { name: "Overview" }).click();
  await expect.poll(() => headings(page)).toEqual(["Sign in"]);

  // The last key that can manage the account, and that of this session.
  await other.goto("/dashboard/keys");
  await other.getByRole("button", { name: "Revoke own" }).click();
  const dialog = other.getByRole("dialog");
  await dialog.getByText("It is the last key that can manage the account").waitFor();
  const revoke = dialog.getByRole("button", { name: "Revoke the key" });
  expect(await revoke.isEnabled()).toBe(false);
  expect(await faultsOf(other)).toEqual([]);
  await dialog.getByLabel("Type own to confirm").fill("own");
  await revoke.click();
  await expect.poll(() => headings(other)).toEqual(["Sign in"]);
  await other.getByText("Your session has ended").waitFor();
  interface Keys {
    readonly data: readonly { readonly id: string; readonly revoked_at: number | null }[];
  }
  const { data } = await service.admin<Keys>("GET", `/accounts/${customer.id}/keys`);
  expect(data.find(({ id }) => id === own.id)?.revoked_at).toEqual(expect.any(Number));
});

test.each([
  ["opens a screen", "/models", (page: Page) => page.getByRole("link", { name: "Keys", exact: true }).click()],
  [
    "makes a call",
    "/playground",
    async (page: Page) => {
      await page.getByLabel("Message").fill("Hello");
      await page.keyboard.press("Enter");
    },
  ],
  [
    "uploads a file",
    "/files",
    (page: Page) => {
      const buffer = Buffer.from("RIFF\0\0\0\0WAVEfmt ");
      return page.getByLabel("Choose files").setInputFiles({ name: "a.wav", mimeType: "audio/wav", buffer });
    },
  ],
] as const)("who %s after the key was revoked is asked for another", async (_, at, act) => {
  const { service } = shared;
  const { page, own } = await signedIn(browser, service, { expectedErrors: /status of 401/ });
  await page.goto(`/dashboard${at}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForLoadState("networkidle");
  await service.admin("DELETE", `/keys/${own.id}`);
  await act(page);
  await expect.poll(() => headings(page)).toEqual(["Sign in"]);
});

test("a one-time link signs in without a word in any address that a server sees, and only once", async () => {
  const { service, mongo } = shared;
  const sessions = createSessions({ mongo, clock: systemClock });
  const customer = await service.account("5.00");
  const { data } = await service.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
  const { code } = await sessions.issueCode(() => ({ kind: "account", account: customer.id, key: data[0]?.id ?? "" }));
  const { page, requests } = await browser.open(service.baseUrl);
  await page.goto(`/dashboard#code=${code}`);
  await page.getByRole("navigation").first().waitFor();
  expect(page.url()).not.toContain(code);
  expect(requests.filter((url) => url.replace(/#.*/, "").includes(code))).toEqual([]);
  const again = await browse(service, "POST", "/dashboard/session", { body: { code } });
  expect(again.status).toBe(401);
  const other = await browser.open(service.baseUrl, { expectedErrors: /status of 401/ });
  await other.page.goto(`/dashboard#code=${code}`);
  await other.page.getByText("This link was used or has expired").waitFor();
});
