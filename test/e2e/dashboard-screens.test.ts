import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, signedIn, signedOut } from "../support/browser-screens.ts";
import { asking, entriesOf, localModel } from "../support/service-setup.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

async function show(page: Page, path: string): Promise<void> {
  await page.goto(`/dashboard${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
}

/** The dialogs, by the screen and the buttons that open them. */
const dialogs = [
  ["", "Set an alert"],
  ["/keys", "New key"],
  ["/keys", "Edit own"],
  ["/keys", "Revoke own"],
  ["/files", /^Delete upl_/],
  ["/invoices", "Billing details"],
] as const;

test.each([
  [360, "dark"],
  [1_440, "light"],
  [360, "light"],
  [1_440, "dark"],
] as const)(
  "at %i px, %s, every screen, dialog and menu fits, and axe finds nothing serious",
  async (width, colorScheme) => {
    const { service, storage, money } = shared;
    const look = { viewport: { width, height: 900 }, colorScheme };
    const { page, customer, own } = await signedOut(browser, service, { ...look, origins: [storage] });
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(["sign-in", await faultsOf(page)]).toEqual(["sign-in", []]);
    await page.getByLabel("API key").fill(own.key);
    await page.keyboard.press("Enter");
    await page.getByText("No calls yet. Here is one:").waitFor();
    expect(["overview without calls", await faultsOf(page)]).toEqual(["overview without calls", []]);
    await show(page, "/usage");
    expect(["usage without calls", await faultsOf(page)]).toEqual(["usage without calls", []]);

    await customer.openai.chat.completions.create(asking(localModel));
    await customer.openai.images.generate({ model: "local/image", prompt: "A sunrise" });
    const type = { "content-type": "audio/wav" };
    expect((await customer.post("/v1/uploads", "RIFF\0\0\0\0WAVEfmt ", { headers: type })).status).toBe(200);
    const failed = customer.openai.chat.completions.create(asking(localModel, "error:400"));
    await expect(failed).rejects.toMatchObject({ status: 400 });
    const details = (await entriesOf(service, customer)).map(({ id }) => `/requests/${id}`);
    await money.sumUsage();
    const usage = ["/usage", "/usage?show=latency&by=time&range=7d&interval=hour"];
    const first = [
      "",
      ...usage,
      "/keys",
      "/requests",
      "/jobs",
      "/batches",
      ...details,
      "/playground",
      "/playground?model=local/image",
    ];
    for (const screen of [
      ...first,
      "/models",
      "/models/local/chat",
      "/files",
      "/top-up",
      "/statement",
      "/invoices",
      "/invoices?by=day",
    ]) {
      await show(page, screen);
      expect([screen, await faultsOf(page)]).toEqual([screen, []]);
    }

    for (const [screen, name] of dialogs) {
      await show(page, screen);
      await page.getByRole("button", { name }).first().click();
      await page.getByRole("dialog").waitFor();
      expect([name, await faultsOf(page)]).toEqual([name, []]);
    }
    await show(page, "/playground");
    await page.getByRole("button", { name: /^Copy as/ }).click();
    expect(["copy as", await faultsOf(page)]).toEqual(["copy as", []]);
    if (width > 1_000) return;
    await show(page, "/invoices");
    const menu = page.getByRole("button", { name: "Menu" });
    await menu.click();
    await page.getByRole("link", { name: "Keys", exact: true }).waitFor();
    expect(["menu", await faultsOf(page)]).toEqual(["menu", []]);
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
    await menu.waitFor();
  },
);

test("elite prices are shown to elite accounts alone", async () => {
  const { service } = shared;
  const { page, customer } = await signedIn(browser, service);
  const elite = page.getByRole("columnheader", { name: "Elite" });
  await show(page, "/models");
  await page.getByRole("columnheader", { name: "Price" }).first().waitFor();
  expect(await elite.count()).toBe(0);
  await service.admin("PATCH", `/accounts/${customer.id}`, { tier: "elite" });
  await show(page, "/models");
  await elite.first().waitFor();
  expect(await faultsOf(page)).toEqual([]);
});

test("models are ordered by what is chosen, and the page of one has its prices, how it performs, and a call that works", async () => {
  const { service } = shared;
  const { page, customer } = await signedIn(browser, service);
  await show(page, "/models?order=name&type=text");
  const names = page.getByRole("heading", { level: 3 });
  await names.first().waitFor();
  const shown = await names.allTextContents();
  expect(shown).toEqual(shown.toSorted((one, other) => one.localeCompare(other)));
  expect(await page.getByLabel("Order").inputValue()).toBe("name");
  for (let n = 0; n < 20; n++) await customer.openai.chat.completions.create(asking(localModel));
  await page.getByLabel("Search").fill("local/chat");
  await page.getByRole("link", { name: "Local chat", exact: true }).click();
  await page.getByRole("heading", { name: "Local chat", level: 1 }).waitFor();
  const row = page.getByRole("table", { name: "Upstreams of the model" }).getByRole("row", { name: /local/ });
  await expect
    .poll(async () => {
      await page.reload();
      await row.waitFor();
      return row.textContent();
    })
    .toMatch(/^localReady(100|9\d(\.\d)?)%/);
  await page.getByText("per 1M tokens").first().waitFor();
  const command = (await page.getByRole("region", { name: "curl" }).locator("pre").textContent()) ?? "";
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", command], {
    env: { ...process.env, API_KEY: customer.key },
  });
  expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion", model: localModel });
  expect(await faultsOf(page)).toEqual([]);
  await show(page, "/models/none/such");
  await page.getByText("This model cannot be called now").waitFor();
});
