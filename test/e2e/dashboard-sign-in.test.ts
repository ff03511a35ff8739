import { expect, test } from "vitest";
import { createSessions } from "../../api/sessions/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo.ts";
import { browserOfFile } from "../support/browser.ts";
import { browse } from "../support/dashboard-setup.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";

const browser = browserOfFile();
const shared = ofFile(
  async (onEnd) => {
    const stores = await testStores();
    const service = await startService(stores, { onEnd });
    const mongo = await connectMongo(stores.MONGODB_URI, systemClock, createLogger("test", "silent"));
    onEnd(() => mongo.close());
    return { service, sessions: createSessions({ mongo, clock: systemClock }) };
  },
  () => {},
);

test("a person signs in by pasting a key, stays signed in after a reload, and signs out", async () => {
  const { service } = shared;
  const customer = await service.account("5.00");
  const { page, requests } = await browser.open(service.baseUrl);
  await page.goto("/dashboard");
  await page.getByLabel("API key").fill(customer.key);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").first().waitFor();
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
  expect(requests.filter((url) => url.includes(customer.key))).toEqual([]);
});

test("a one-time link signs in without a word in any address that a server sees, and only once", async () => {
  const { service, sessions } = shared;
  const customer = await service.account("5.00");
  const { data } = await service.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
  const code = await sessions.issueCode(() => ({ kind: "account", account: customer.id, key: data[0]?.id ?? "" }));
  const { page, requests } = await browser.open(service.baseUrl);
  await page.goto(`/dashboard/sign-in#code=${code}`);
  await page.getByRole("navigation").first().waitFor();
  expect(page.url()).not.toContain(code);
  expect(requests.filter((url) => url.replace(/#.*/, "").includes(code))).toEqual([]);
  const again = await browse(service, "POST", "/dashboard/session", { body: { code } });
  expect(again.status).toBe(401);
});
