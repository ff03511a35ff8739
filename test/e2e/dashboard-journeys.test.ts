import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { faultsOf, moneyShown } from "../support/browser-screens.ts";
import { mockError, startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService, testAdminToken } from "../support/service.ts";
import { asking, entriesOf } from "../support/service-setup.ts";

const browser = browserOfFile();
const shared = ofFile(
  async (onEnd) => {
    const openai = await startMockOpenai();
    onEnd(() => openai.close());
    const env = { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: openai.url };
    const often = ["watch-upstreams", "watch-balances"] as const;
    return { openai, service: await startService(await testStores(), { env, onEnd, often }) };
  },
  ({ openai }) => openai.reset(),
);

/** Opens the bell, which shows this once as new, with its details; then its link is followed. */
async function told(page: Page, title: string | RegExp, detail: string): Promise<void> {
  const bell = page.getByRole("button", { name: /^Notifications/ });
  await expect
    .poll(async () => {
      await page.reload();
      return bell.textContent();
    })
    .toContain("Notifications, 1 new");
  const list = page.getByRole("region", { name: "Notifications" });
  for (const isNew of [true, false]) {
    await bell.click();
    await list.getByText(detail).waitFor();
    expect([await bell.textContent(), await list.getByText("New", { exact: true }).count()]).toEqual([
      "Notifications",
      isNew ? 1 : 0,
    ]);
    expect(await faultsOf(page)).toEqual([]);
    if (isNew) await page.keyboard.press("Escape");
    else await list.getByRole("link", { name: title }).click();
    await list.waitFor({ state: "detached" });
  }
}

test("a newcomer follows a link, makes a paid call, is told that the balance is low, and finds why the call cost what it cost", async () => {
  const { service, openai } = shared;
  const customer = await service.account("5.00");
  const path = `/accounts/${customer.id}/keys`;
  const { id } = await service.admin<{ id: string }>("POST", path, { name: "own", scopes: ["inference", "manage"] });
  const { url } = await service.admin<{ url: string }>("POST", `/keys/${id}/sign-in-links`);
  const { page } = await browser.open(service.baseUrl, { viewport: { width: 1440, height: 900 } });
  await page.goto(url);
  await page.getByText("No calls yet. Here is one:").waitFor();
  await page.getByRole("button", { name: "Set an alert" }).click();
  const dialog = page.getByRole("dialog", { name: "Balance alert" });
  await dialog.getByText("No webhook endpoint receives balance.low").waitFor();
  await dialog.getByLabel("Warn when less than this is available, in USD").fill("5");
  await dialog.getByRole("button", { name: "Save" }).click();

  openai.respond({ text: "One, two, three." });
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await page.getByLabel("Model", { exact: true }).selectOption("openai/gpt-4o-mini");
  await page.getByLabel("Message").fill("Count");
  await page.keyboard.press("Enter");
  await page.getByText(/^Cost \$/).waitFor();
  const [entry] = await entriesOf(service, customer);
  const cost = moneyShown(entry?.amount_usd ?? "");
  await page.getByText(`Cost ${cost}`, { exact: true }).waitFor();
  await told(page, /^Balance low: \$4\.99\d* is available$/, "The alert is set to $5.00.");
  await page.getByText("Less than $5.00 is available.").waitFor();

  await page.getByRole("link", { name: "Requests", exact: true }).click();
  await page.getByRole("row", { name: /gpt-4o-mini/ }).click();
  const lines = page.getByRole("table", { name: "Cost of the request" });
  await expect.poll(() => lines.locator("tfoot td").last().textContent()).toBe(cost);
  expect(await lines.getByRole("row").count()).toBeGreaterThan(2);
  expect(await faultsOf(page)).toEqual([]);
});

test("an operator sees on the overview that a key is refused, and one click later what the provider says and where it was called", async () => {
  const { service, openai } = shared;
  const customer = await service.account("5.00");
  openai.always(mockError(401, "Incorrect API key provided.", { code: "invalid_api_key" }));
  const call = customer.openai.chat.completions.create(asking("openai/gpt-4o-mini"));
  await expect(call).rejects.toMatchObject({ status: 502 });

  const { page } = await browser.open(service.baseUrl, { viewport: { width: 360, height: 800 }, colorScheme: "dark" });
  await page.goto("/dashboard/operator");
  await page.getByLabel("API key").fill(testAdminToken);
  await page.keyboard.press("Enter");
  const row = page.getByRole("table", { name: "Upstreams" }).getByRole("row", { name: /^openai / });
  await row.getByText("Key refused").waitFor();
  await row.getByText("Incorrect API key provided.").waitFor();
  expect(await faultsOf(page)).toEqual([]);
  // The call failed after it was accepted, and Requests lists it as that.
  await expect.poll(() => page.getByText(/^[1-9][\d.]+ % of calls, as in Requests$/).count()).toBe(1);

  await expect.poll(() => row.textContent()).toMatch(/\d+ \([1-9][\d.]+ %\)/);
  await row.getByRole("link", { name: "openai" }).click();
  await page.getByRole("heading", { name: "Catalog", level: 1 }).waitFor();
  await told(page, "openai refuses its key", "Incorrect API key provided.");
  const upstream = page.getByRole("table", { name: "Upstreams" }).getByRole("row", { name: /^openai / });
  await upstream.getByText("Key refused").waitFor();
  await upstream.getByText("Incorrect API key provided.").waitFor();
  await upstream.getByText(openai.url).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("button", { name: "Models", exact: true }).click();
  await page.getByLabel("Upstream").selectOption("openai");
  await page.getByLabel("State").selectOption("listed");
  await page.getByText("No model fits").waitFor();
  expect(await faultsOf(page)).toEqual([]);
});
