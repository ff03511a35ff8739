import { Command } from "commander";
import { systemClock } from "#platform/clock";
import { environment } from "#platform/config";
import { ConfigError, configError } from "#platform/config-error";
import { createProcessLogger } from "#platform/logger";
import { connectMongo, type Mongo } from "#platform/mongo/connection";
import { MigrationError, migrate, migrationStates } from "#platform/mongo/migrations";
import { withSecretFiles } from "#platform/process/secret-files";
import { apiSchemas } from "../../api/migrations.ts";
import { sharedSchemas } from "../../shared/migrations.ts";
import { aligned } from "./admin-print.ts";

/** `npm run migrate`: prepares MongoDB for this version of the service. It needs only MONGODB_URI. */
const schemas = [...sharedSchemas, ...apiSchemas];

const program = new Command("migrate")
  .description("Creates collections and indexes, and migrates stored documents to the schema of this version.")
  .helpCommand(false)
  .showHelpAfterError("Use --help to see the usage.");

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new MigrationError("Stopped. Run it again to continue.")));

async function withMongo(
  work: (mongo: Mongo, log: ReturnType<typeof createProcessLogger>) => Promise<void>,
): Promise<void> {
  const env = withSecretFiles(process.env, ["MONGODB_URI"]);
  const given = environment.pick({ MONGODB_URI: true, LOG_LEVEL: true }).safeParse({
    MONGODB_URI: env["MONGODB_URI"],
    LOG_LEVEL: env["LOG_LEVEL"] || undefined,
  });
  if (!env["MONGODB_URI"]) throw configError(`MONGODB_URI is missing: ${environment.shape.MONGODB_URI.description}`);
  if (!given.success)
    throw configError(...given.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`));
  const log = createProcessLogger("migrate", given.data.LOG_LEVEL);
  const mongo = await connectMongo(given.data.MONGODB_URI, systemClock, log);
  try {
    await work(mongo, log);
  } finally {
    await mongo.close();
  }
}

async function showStates(mongo: Mongo): Promise<number> {
  const states = await migrationStates(mongo, schemas);
  const rows = states.map(({ id, state, appliedAt, changed, what }) => [
    id,
    state,
    appliedAt?.toISOString() ?? "-",
    `${changed}`,
    what,
  ]);
  process.stdout.write(aligned([["MIGRATION", "STATE", "APPLIED", "CHANGED", "WHAT"], ...rows]));
  return states.filter(({ state }) => state === "pending" || state === "under way").length;
}

program
  .command("run", { isDefault: true })
  .description("applies pending migrations")
  .option(
    "--offline",
    "also apply migrations that processes of older versions cannot work with; no process of the service may be running",
  )
  .action((options: { offline?: true }) =>
    withMongo(async (mongo, log) => {
      const offline = options.offline === true;
      const applied = await migrate({ mongo, schemas, clock: systemClock, log, signal: stop.signal, offline });
      log.info({ applied }, "the schema matches this version");
    }),
  );

program
  .command("status")
  .description("shows applied and pending migrations; the exit code is 2 if any are pending")
  .action(() =>
    withMongo(async (mongo) => {
      if ((await showStates(mongo)) > 0) process.exitCode = 2;
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof MigrationError || error instanceof ConfigError;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
