import { type Browser, type BrowserContextOptions, chromium as driver, type Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { ofFile } from "./of-file.ts";
import { unpackBrowser } from "./unpack-browser.ts";

/**
 * Omits the package's arguments, which disable the same-origin policy that these tests check. A sandbox needs rights
 * that root in a container does not have.
 */
async function launch(): Promise<Browser> {
  const executablePath = await unpackBrowser();
  return driver.launch({ args: ["--no-sandbox"], timeout: patienceMs, ...(executablePath && { executablePath }) });
}

export interface BrowserPage {
  readonly page: Page;
  /** The requests of the page so far. */
  readonly requests: readonly string[];
}

interface PageOptions extends BrowserContextOptions {
  /** Other origins that the page may use, such as the storage's. */
  readonly origins?: readonly string[];
  /** Expected console errors. */
  readonly expectedErrors?: RegExp;
}

/** As long as that of `eventually`. */
const patienceMs = 120_000;

/**
 * One browser for a test file. Each page has separate cookies; the test fails if the page sent a request to a foreign
 * host, threw, or logged an error.
 */
export function browserOfFile() {
  const shared = ofFile(
    async (onEnd) => {
      const browser = await launch();
      onEnd(() => browser.close());
      return { browser };
    },
    () => {},
  );
  return {
    async open(baseUrl: string, { origins = [], expectedErrors, ...options }: PageOptions = {}): Promise<BrowserPage> {
      const context = await shared.browser.newContext({ baseURL: baseUrl, ...options });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      const requests: string[] = [];
      const faults: string[] = [];
      const own = new Set([new URL(baseUrl).origin, ...origins]);
      page.on("request", (request) => {
        const { origin, protocol } = new URL(request.url());
        requests.push(request.url());
        if (protocol !== "blob:" && !own.has(origin)) faults.push(`asked a foreign host: ${request.url()}`);
      });
      page.on("pageerror", (error) => faults.push(`threw: ${error.stack ?? error.message}`));
      page.on("console", (message) => {
        const text = `${message.text()} ${message.location().url}`;
        if (message.type() !== "error" || expectedErrors?.test(text)) return;
        faults.push(`logged: ${text}`);
      });
      onTestFinished(async () => {
        await context.close();
        expect(faults).toEqual([]);
      });
      return { page, requests };
    },
  };
}
