import { buildDashboard } from "../../infra/cli/build-dashboard.ts";
import { unpackBrowser } from "./unpack-browser.ts";

/** Builds the dashboard once per run, before test files that would do it at the same time. */
export default async function setup(): Promise<void> {
  await Promise.all([buildDashboard(() => {}), unpackBrowser()]);
}
