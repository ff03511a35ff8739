import chromium from "@sparticuz/chromium";

/** The package's Chromium, which is for one kind of machine. Undefined elsewhere: Playwright finds its own. */
export const unpackBrowser = async (): Promise<string | undefined> =>
  process.platform === "linux" && process.arch === "x64" ? chromium.executablePath() : undefined;
