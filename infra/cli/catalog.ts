import { Command } from "commander";
import { type CatalogEntries, CatalogError, catalogHash, readCatalog } from "#catalog";
import { aligned } from "./admin-print.ts";

/** `npm run catalog -- check | diff`: examines the catalog that the service would load, before a start. */
const program = new Command("catalog")
  .description("Checks a model catalog and its overlay, and shows what they change.")
  .helpCommand(false)
  .showHelpAfterError("Use --help to see the usage.");

interface Options {
  readonly overlay?: string;
  readonly json?: true;
}

const overlayOption = ["--overlay <file>", "file that is merged into the catalog (default: CATALOG_OVERLAY)"] as const;
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
  .description("checks a catalog (default: CATALOG_FILE, or the shipped one); the exit code is 1 if it has faults")
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

type Part = "catalog" | "upstream" | "model";

/** A changed field of an entry that both catalogs have. A null value means that the entry has no such field. */
interface FieldChange {
  readonly part: Part;
  readonly id: string;
  /** A path such as `pricing.input`, `tiers.0.pricing.output` or `features`. */
  readonly field: string;
  readonly old: string | null;
  readonly new: string | null;
}

type Fields = ReadonlyMap<string, string>;

/** Returns the values in an entry by their paths. A list of plain values is one value: its indices mean nothing. */
function fieldsOf(value: unknown, path = ""): readonly (readonly [string, string])[] {
  const isList = Array.isArray(value);
  const isPlain = typeof value !== "object" || value === null || (isList && value.every((x) => typeof x !== "object"));
  if (isPlain) return [[path, isList ? value.join(", ") : String(value)]];
  return Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .flatMap(([name, inner]) => fieldsOf(inner, path ? `${path}.${name}` : name));
}

const entriesOf = ({ models, upstreams, ...rest }: CatalogEntries): Record<Part, ReadonlyMap<string, Fields>> => ({
  catalog: new Map([["", new Map(fieldsOf(rest))]]),
  upstream: new Map(Object.entries(upstreams).map(([id, entry]) => [id, new Map(fieldsOf(entry))])),
  model: new Map(models.map((entry) => [entry.id, new Map(fieldsOf(entry))])),
});

function diffCatalogs(from: CatalogEntries, to: CatalogEntries) {
  const [before, after] = [entriesOf(from), entriesOf(to)];
  const added: { part: Part; id: string }[] = [];
  const removed: { part: Part; id: string }[] = [];
  const changed: FieldChange[] = [];
  for (const part of ["catalog", "upstream", "model"] as const) {
    for (const id of after[part].keys()) if (!before[part].has(id)) added.push({ part, id });
    for (const [id, old] of before[part]) {
      const now = after[part].get(id);
      if (!now) {
        removed.push({ part, id });
        continue;
      }
      for (const field of new Set([...old.keys(), ...now.keys()])) {
        const change = { part, id, field, old: old.get(field) ?? null, new: now.get(field) ?? null };
        if (change.old !== change.new) changed.push(change);
      }
    }
  }
  return { added, removed, changed };
}

/** Descriptions and patterns are shortened. */
const short = (text: string | null) => (text === null ? "-" : text.length > 60 ? `${text.slice(0, 59)}…` : text);

function show({ added, removed, changed }: ReturnType<typeof diffCatalogs>): string {
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
    "shows what a catalog changes. Two files are compared with each other, one file with the shipped catalog; without files, the configured catalog is compared with the shipped one",
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
