import AxeBuilder from "@axe-core/playwright";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { createMoney } from "../../shared/money/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import type { browserOfFile } from "./browser.ts";
import { ofFile } from "./of-file.ts";
import { testStores } from "./servers.ts";
import { type Client, type Environment, startService } from "./service.ts";

type Browser = ReturnType<typeof browserOfFile>;
type Options = Parameters<Browser["open"]>[1];

/** One service for all tests of a file, the origin of its storage, and a connection of the test's own to its database. */
export const dashboardOfFile = (env: Environment = {}) =>
  ofFile(
    async (onEnd) => {
      const stores = await testStores();
      const service = await startService(stores, { env, onEnd });
      const log = createLogger("test", "silent");
      const mongo = await connectMongo(stores.MONGODB_URI, systemClock, log);
      onEnd(() => mongo.close());
      const money = createMoney({ mongo, clock: systemClock, log });
      return { service, storage: new URL(stores.S3_ENDPOINT).origin, mongo, money };
    },
    () => {},
  );

/** A new account, a key that manages it, and the page that asks for the key. */
export async function signedOut(browser: Browser, service: Client, options?: Options) {
  const customer = await service.account("5.00");
  const own = await service.admin<{ id: string; key: string }>("POST", `/accounts/${customer.id}/keys`, {
    name: "own",
    scopes: ["inference", "manage"],
  });
  const { page, requests } = await browser.open(service.baseUrl, options);
  await page.goto("/dashboard");
  return { page, requests, customer, own };
}

/** Like `signedOut`, but signed in. */
export async function signedIn(browser: Browser, service: Client, options?: Options) {
  const opened = await signedOut(browser, service, options);
  const { page, own } = opened;
  await page.getByLabel("API key").fill(own.key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  return opened;
}

/** More than the tab stops of any screen. */
const mostStops = 80;

/** Presses Tab, or Shift+Tab, until this has the focus. */
export async function tabTo(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await target.waitFor();
  const focused = target.and(page.locator(":focus"));
  for (let stops = 0; stops < mostStops; stops++) {
    await page.keyboard.press(key);
    if ((await focused.count()) > 0) return;
  }
  throw new Error(`${key} does not lead to ${String(target)}`);
}

/** Reaches a button or link by keyboard alone, and presses it. */
export async function pressByKeyboard(page: Page, target: Locator, key?: "Tab" | "Shift+Tab"): Promise<void> {
  await tabTo(page, target, key);
  await page.keyboard.press("Enter");
}

/** Lists elements wider than the page, and axe's serious or critical findings. */
export async function faultsOf(page: Page): Promise<string[]> {
  await expect.poll(() => page.getByText("Loading", { exact: true }).count()).toBe(0);
  const overflowPx = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  // Run in the page itself: it has no frames, for which the other mode opens an additional page.
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return [
    ...(overflowPx > 0 ? [`${overflowPx} px too wide`] : []),
    ...serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`),
  ];
}

/** The number under a name. */
export const figure = (page: Page, name: string): Locator =>
  page
    .locator("dl")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd")
    .first();

/** Formats an amount as screens do, without the sign of a ledger's entry. */
export const moneyShown = (usd: string): string => `$${usd.replace(/^-/, "")}`;
