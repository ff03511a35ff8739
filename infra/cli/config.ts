import { Command, Option } from "commander";
import { newPrivateKey, publicKeyOf } from "#secrets";
import { aligned } from "./admin-print.ts";
import { type ConfigReport, checkConfig, type ProcessName, processes } from "./config-check.ts";

/**
 * `npm run config -- check`: checks this environment as a start would, without starting anything. `npm run config -- keys`:
 * makes a pair of keys for secrets of customers.
 */
const program = new Command("config")
  .description("Checks the environment variables of the service, and makes keys for it.")
  .helpCommand(false)
  .showHelpAfterError("Use --help to see the usage.");

function show({ set, upstreams, unknown }: ConfigReport): string {
  const parts = [
    set.length > 0
      ? aligned([["VARIABLE", "VALUE", "FILE"], ...set.map(({ name, value, file }) => [name, value, file ?? ""])])
      : "No variable of the service is set.\n",
    upstreams.length > 0
      ? aligned([["UPSTREAM", "STATE", "KEY"], ...upstreams.map(({ id, state, key }) => [id, state, key ?? ""])])
      : "",
    unknown.map(({ name, did_you_mean }) => `Nothing reads ${name}. Did you mean ${did_you_mean}?\n`).join(""),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

program
  .command("check")
  .description(
    "shows which variables are set, with secrets masked, and which upstreams have keys; the exit code is 1 if there are faults",
  )
  .addOption(new Option("--process <process>", "run only the checks of this kind of process").choices(processes))
  .option("--json", "print the result as JSON")
  .action(async (options: { process?: ProcessName; json?: true }) => {
    const report = await checkConfig(process.env, options.process ? [options.process] : processes);
    process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : show(report));
    if (report.ok) return;
    process.exitCode = 1;
    if (!options.json) process.stderr.write(`\nThe configuration is not valid.\n  ${report.faults.join("\n  ")}\n`);
  });

program
  .command("keys")
  .description("prints a new pair of SECRETS_PUBLIC_KEY, for the API, and SECRETS_PRIVATE_KEYS, for the workers")
  .action(async () => {
    const privateKey = await newPrivateKey();
    process.stdout.write(`SECRETS_PUBLIC_KEY=${publicKeyOf(privateKey)}\nSECRETS_PRIVATE_KEYS=${privateKey}\n`);
  });

await program.parseAsync();
