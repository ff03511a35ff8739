import { Buffer } from "node:buffer";
import AxeBuilder from "@axe-core/playwright";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { payUrl } from "../support/topups-setup.ts";
import { startPaid } from "../support/x402-setup.ts";

const browser = browserOfFile();
const shared = ofFile(
  async (onEnd) => {
    const stores = await testStores();
    const service = await startService(stores, { onEnd });
    return { service, storage: new URL(stores.S3_ENDPOINT).origin };
  },
  () => {},
);

type Service = typeof shared.service;
type Options = Parameters<typeof browser.open>[1];

/** A new account, whose key manages it, signed in. */
async function signedIn(service: Service, options?: Options) {
  const customer = await service.account("5.00");
  const scopes = ["inference", "manage"];
  const { key } = await service.admin<{ key: string }>("POST", `/accounts/${customer.id}/keys`, {
    name: "own",
    scopes,
  });
  const { page } = await browser.open(service.baseUrl, options);
  page.setDefaultTimeout(60_000);
  await page.goto("/dashboard");
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  return { page, customer, key };
}

async function press(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole("button", { name }).first().focus();
  await page.keyboard.press("Enter");
}

const hello = { model: "local/chat", messages: [{ role: "user" as const, content: "Hello!" }] };

test("a key is made by keyboard, works, is held to its budget, and is revoked", async () => {
  const { service } = shared;
  const { page } = await signedIn(service);
  await page.getByText("No calls yet. Here is one:").waitFor();
  await page.getByRole("link", { name: "Keys" }).focus();
  await page.keyboard.press("Enter");
  await press(page, "New key");
  await page.getByLabel("Name", { exact: true }).fill("tiny");
  await page.getByLabel("Budget in USD").fill("0.0001");
  await press(page, "Make the key");
  const dialog = page.getByRole("dialog", { name: "Copy the key now" });
  const secret = /live_[0-9A-Za-z]{40}/.exec((await dialog.textContent()) ?? "")?.[0] ?? "";
  const client = new OpenAI({ apiKey: secret, baseURL: `${service.baseUrl}/v1`, maxRetries: 0 });
  const { usage } = await client.chat.completions.create({ ...hello, max_tokens: 2 });
  expect(usage).toMatchObject({ cost_usd: expect.stringMatching(/^0\.0/) });
  const beyond = client.chat.completions.create({ ...hello, max_tokens: 1_000 });
  await expect(beyond).rejects.toMatchObject({ status: 402, code: "budget_exceeded" });

  await press(page, "I have it");
  await dialog.waitFor({ state: "detached" });
  expect(await page.content()).not.toContain(secret);
  await page.reload();
  const row = page.getByRole("row", { name: /tiny/ });
  await row.getByRole("progressbar").waitFor();
  await press(page, "Revoke tiny");
  await page
    .getByRole("dialog")
    .getByRole("button", { name: /Revoke/ })
    .focus();
  await page.keyboard.press("Enter");
  await row.getByText("Revoked").waitFor();
  await expect(client.chat.completions.create(hello)).rejects.toMatchObject({ status: 401 });
});

test("the playground streams an answer and says its cost; the balance and the request show it, also after a reload", async () => {
  const { service } = shared;
  const { page, customer } = await signedIn(service);
  await page.getByRole("link", { name: "Playground" }).first().click();
  await page.getByLabel("Message").fill("Say this again");
  await page.keyboard.press("Enter");
  await page.getByText(/You said: "Say this again"/).waitFor();
  const outcome = page.getByText(/^Cost/);
  await outcome.waitFor();
  await page.getByLabel("Message").fill("slow:60000");
  await page.keyboard.press("Enter");
  await press(page, "Stop");
  await page.getByText("Stopped").waitFor();
  await page.getByLabel("Message").fill("Once more");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Details of the call" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  await service.settled();
  const spent = await customer.available();
  expect(Number(spent)).toBeLessThan(5);
  await page.getByRole("link", { name: "Overview" }).click();
  await expect.poll(async () => (await page.getByRole("main").textContent())?.includes(`$${spent}`)).toBe(true);

  const missing = { ...hello, model: "local/chat", messages: [] };
  expect((await customer.post("/v1/chat/completions", missing)).ok).toBe(false);
  await page.getByRole("link", { name: "Requests" }).first().click();
  await page.getByLabel("Status").selectOption("succeeded");
  await page.getByLabel("Model").selectOption("local/chat");
  const rows = page.getByRole("table", { name: /Requests/ }).getByRole("row");
  await expect.poll(() => rows.count()).toBe(3);
  await page.reload();
  await expect.poll(() => rows.count()).toBe(3);
  expect(page.url()).toMatch(/status=succeeded/);
  expect(await page.getByLabel("Model").inputValue()).toBe("local/chat");
  await page.getByLabel("Status").selectOption("failed");
  await page.getByText("No request matches").waitFor();
});

test("an image is made and shown, and 20 MB are uploaded and listed with how long they live", async () => {
  const { service, storage } = shared;
  const { page } = await signedIn(service, { origins: [storage] });
  await page.goto("/dashboard/playground?model=local/image");
  await page.getByLabel(/prompt/i).fill("A sunrise");
  await press(page, "Generate");
  const preview = page.getByRole("img", { name: /^Preview of/ });
  await expect
    .poll(() => preview.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
    .toBeGreaterThan(0);
  await page.getByText(/^Cost/).waitFor();
  await page.getByText(/^Deleted in 23 h/).waitFor();

  await page.getByRole("link", { name: "Files" }).first().click();
  await page.getByText("Generated", { exact: true }).waitFor();
  const wav = Buffer.concat([Buffer.from("RIFF\0\0\0\0WAVEfmt ", "latin1"), Buffer.alloc(20 * 1024 * 1024)]);
  await page.getByLabel("Choose files").setInputFiles({ name: "talk.wav", mimeType: "audio/wav", buffer: wav });
  await page
    .getByText(/upl_\w+/)
    .first()
    .waitFor();
  await page
    .getByText(/23 h 5\d min/)
    .first()
    .waitFor();
});

test("a top-up is paid on chain while the page waits, until it says completed", async () => {
  const { service, chain } = await startPaid();
  const { page } = await signedIn(service);
  await page.getByRole("link", { name: "Top up" }).first().click();
  await page.getByLabel("Amount in USD").fill("2.5");
  await press(page, "Show the QR code");
  const link = page.getByRole("link", { name: "Open in a wallet" });
  await page.getByRole("img", { name: /^QR code/ }).waitFor();
  await payUrl(chain, await chain.wallet("3.00", { sol: 1n }), (await link.getAttribute("href")) ?? "");
  await page.getByText("It is on the balance.").waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await expect.poll(() => page.getByText("$7.50").count()).toBeGreaterThan(0);
});

const screens = ["", "/keys", "/requests", "/playground", "/models", "/files", "/top-up", "/invoices"];

test.each([
  [360, "dark"],
  [1440, "light"],
] as const)("at %i px, %s, every screen fits, and axe finds nothing serious", async (width, colorScheme) => {
  const { service } = shared;
  const { page, customer } = await signedIn(service, { viewport: { width, height: 900 }, colorScheme });
  await customer.openai.chat.completions.create(hello);
  for (const screen of screens) {
    await page.goto(`/dashboard${screen}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect([screen, serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)]).toEqual([screen, []]);
    expect([screen, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([screen, width]);
  }
});
