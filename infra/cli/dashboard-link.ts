import { readDemo } from "./demo.ts";
import { issueSignInCodes } from "./sign-in-codes.ts";
import { readStartConfig } from "./start-config.ts";
import { signInLinks } from "./terminal.ts";

/** `npm run dashboard:link`: prints links that sign in to the dashboard of the running demo. */
try {
  const demo = await readDemo(readStartConfig(process.env).DATA_DIR);
  const codes = await issueSignInCodes(demo, demo.baseUrl);
  process.stdout.write(`\n  Each link works once, for five minutes.\n\n${signInLinks(demo, codes)}\n`);
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
