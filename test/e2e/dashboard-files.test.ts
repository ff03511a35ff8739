import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, signedIn } from "../support/browser-screens.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();

/** Drops a sound of this size, created by the page, on the drop zone. */
async function drop(page: Page, name: string, bytes: number): Promise<void> {
  const file = `new File(["RIFF\\0\\0\\0\\0WAVEfmt ", new Uint8Array(${bytes - 16})], "${name}", { type: "audio/wav" })`;
  const dataTransfer = await page.evaluateHandle(
    `(() => { const data = new DataTransfer(); data.items.add(${file}); return data; })()`,
  );
  const target = page.getByText("Drop files here");
  await target.dispatchEvent("dragover", { dataTransfer });
  await target.dispatchEvent("drop", { dataTransfer });
}

const section = (page: Page, name: string) =>
  page.locator("section").filter({ has: page.getByRole("heading", { name, exact: true }) });

test("20 MB show how far they are, and then in the list how long they live", async () => {
  const { service, storage } = shared;
  const { page, customer } = await signedIn(browser, service, { origins: [storage] });
  await customer.openai.images.generate({ model: "local/image", prompt: "A sunrise" });
  await page.clock.install();
  await page.goto("/dashboard/files");
  await section(page, "Uploads").getByText("No uploads").waitFor();
  await section(page, "Generated").getByRole("listitem").waitFor();

  const network = await page.context().newCDPSession(page);
  const limit = (uploadThroughput: number) =>
    network.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput,
    });
  await network.send("Network.enable");
  await limit(500_000);
  const buffer = Buffer.alloc(20_000_000);
  buffer.write("RIFF\0\0\0\0WAVEfmt ");
  await page.getByLabel("Choose files").setInputFiles({ name: "talk.wav", mimeType: "audio/wav", buffer });
  const bar = page.getByRole("progressbar", { name: "Upload of talk.wav" });
  const sent = async () => Number(await bar.getAttribute("value"));
  await expect.poll(sent).toBeGreaterThan(0);
  const first = await sent();
  expect(first).toBeLessThan(1);
  await expect.poll(sent).toBeGreaterThan(first);
  await page.getByText(/^[\d.]+ [KM]?B of 20 MB$/).waitFor();
  await limit(-1);
  const card = section(page, "Uploads").getByRole("listitem");
  await card.getByText(/audio\/wav · 20 MB$/).waitFor();
  await bar.waitFor({ state: "detached" });
  await card.getByText(/^Deleted in 23 h 5\d min$/).waitFor();
  await page.clock.fastForward("01:00:00");
  await card.getByText(/^Deleted in 22 h 5\d min$/).waitFor();
  await page.clock.fastForward("23:00:00");
  await card.getByText("Deleted", { exact: true }).waitFor();
});

test("a dropped file of more than 95 MB goes to storage in parts", async () => {
  const { service, storage } = shared;
  const { page, requests } = await signedIn(browser, service, { origins: [storage] });
  await page.goto("/dashboard/files");
  await drop(page, "long.wav", 96_000_000);
  const card = section(page, "Uploads").getByRole("listitem");
  await card.getByText(/ · 96 MB$/).waitFor();
  const parts = requests.filter((url) => url.startsWith(storage) && url.includes("partNumber="));
  expect(parts.length).toBeGreaterThan(1);
});
