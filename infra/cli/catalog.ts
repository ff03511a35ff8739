import { Command } from "commander";
import { type CatalogEntries, CatalogError, catalogHash, readCatalog } from "#catalog";
import { aligned } from "./admin-print.ts";
import { type CatalogDiff, diffCatalogs } from "./catalog-diff.ts";

/** `npm run catalog -- check | diff`: examines the catalog that the service would load, before a start. */
const program = new Command("catalog")
  .description("Checks a catalog of models and its overlay, and shows what they change.")
  .helpCommand(false)
  .showHelpAfterError("Add --help for the usage.");

interface Options {
  readonly overlay?: string;
  readonly json?: true;
}

const overlayOption = ["--overlay <file>", "merged over the catalog (default: CATALOG_OVERLAY)"] as const;
const jsonOption = ["--json", "print the result as JSON"] as const;

const sourceOf = (file: string | undefined, { overlay }: Options) => ({
  file: file ?? (process.env["CATALOG_FILE"] || undefined),
  overlay: overlay ?? (process.env["CATALOG_OVERLAY"] || undefined),
});

const print = (options: Options, value: object, text: () => string) =>
  process.stdout.write(options.json ? `${JSON.stringify(value, null, 2)}\n` : text());

function summary(entries: CatalogEntries) {
  const { models, upstreams } = entries;
  const types: Record<string, number> = {};
  for (const { type } of models) types[type] = (types[type] ?? 0) + 1;
  return { hash: catalogHash(entries), models: models.length, types, upstreams: Object.keys(upstreams) };
}

program
  .command("check [file]")
  .description("checks a catalog (default: CATALOG_FILE, else the shipped one); exit code 1 if it has faults")
  .option(...overlayOption)
  .option(...jsonOption)
  .action((file: string | undefined, options: Options) => {
    const source = sourceOf(file, options);
    const found = summary(readCatalog(source.file, source.overlay));
    print(options, found, () =>
      aligned([
        ["catalog", source.file ?? "shipped"],
        ["overlay", source.overlay ?? "none"],
        ["hash", found.hash],
        ["models", `${found.models}`],
        ...Object.entries(found.types).map(([type, count]) => [`  ${type}`, `${count}`]),
        ["upstreams", `${found.upstreams.length}`],
      ]),
    );
  });

/** Descriptions and patterns are shortened. */
const short = (text: string | null) => (text === null ? "-" : text.length > 60 ? `${text.slice(0, 59)}…` : text);

function show({ added, removed, changed }: CatalogDiff): string {
  const rows = [
    ...added.map(({ part, id }) => [part, id, "added", "", ""]),
    ...removed.map(({ part, id }) => [part, id, "removed", "", ""]),
    ...changed.map((each) => [each.part, each.id, each.field, short(each.old), short(each.new)]),
  ];
  return rows.length > 0 ? aligned([["", "ID", "FIELD", "OLD", "NEW"], ...rows]) : "No differences.\n";
}

program
  .command("diff [from] [to]")
  .description(
    "what a catalog changes. Two files are compared; one with the shipped catalog; without a file that of the environment with the shipped one",
  )
  .option(...overlayOption)
  .option(...jsonOption)
  .action((from: string | undefined, to: string | undefined, options: Options) => {
    const target = sourceOf(to ?? from, options);
    const diff = diffCatalogs(
      readCatalog(to === undefined ? undefined : from),
      readCatalog(target.file, target.overlay),
    );
    print(options, diff, () => show(diff));
  });

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof CatalogError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
