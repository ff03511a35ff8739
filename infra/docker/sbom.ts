/**
 * `npm run sbom -- [folder]`: prints the packages installed in the folder as CycloneDX 1.5 JSON, from the hidden
 * lockfile that npm writes there. Without a folder it installs the production dependencies into a temporary folder, as
 * the Dockerfile does. The same packages always produce the same text. `npm sbom` is unsuitable, because it refuses a
 * tree in which a peer dependency has a version other than the requested one.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

interface Package {
  /** Set where the folder's name differs from the package's. */
  readonly name?: string;
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}
type Packages = Readonly<Record<string, Package>>;

const readJson = (...path: readonly string[]) => JSON.parse(readFileSync(join(...path), "utf8")) as unknown;
const inFolder = "node_modules/";

const nameOf = (path: string, { name }: Package) => name ?? path.slice(path.lastIndexOf(inFolder) + inFolder.length);
const urlOf = (name: string, version: string) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

function licensesOf({ license }: Package) {
  if (license === undefined) return [];
  if (/ (OR|AND|WITH) /.test(license)) return [{ expression: license }];
  return [{ license: /\s|^UNLICENSED$/.test(license) ? { name: license } : { id: license } }];
}

const hashesOf = ({ integrity = "" }: Package) =>
  [...integrity.matchAll(/\bsha(256|384|512)-(\S+)/g)].map(([, bits, digest = ""]) => ({
    alg: `SHA-${bits}`,
    content: Buffer.from(digest, "base64").toString("hex"),
  }));

/** Returns the folder of a package imported from `from`: its own `node_modules`, or the nearest one above. */
function resolved(packages: Packages, from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf(`/${inFolder}`)))) {
    const path = at === "" ? inFolder + name : `${at}/${inFolder}${name}`;
    if (packages[path]) return path;
    if (at === "") return undefined;
  }
}

function describe(folder: string) {
  const { packages } = readJson(folder, "node_modules/.package-lock.json") as { packages: Packages };
  const own = readJson(folder, "package.json") as Package & { readonly name: string };
  const linked = (from: string, { dependencies, optionalDependencies, peerDependencies }: Package) => {
    const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
    return [...new Set(names.flatMap((name) => resolved(packages, from, name) ?? []))].toSorted();
  };
  const root = urlOf(own.name, own.version);
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: { type: "application", "bom-ref": root, name: own.name, version: own.version, purl: root },
    },
    components: Object.entries(packages).map(([path, each]) => ({
      type: "library",
      // One package may be installed twice.
      "bom-ref": path,
      name: nameOf(path, each),
      version: each.version,
      purl: urlOf(nameOf(path, each), each.version),
      licenses: licensesOf(each),
      hashes: hashesOf(each),
    })),
    dependencies: [
      { ref: root, dependsOn: linked("", { ...own, peerDependencies: {} }) },
      ...Object.entries(packages).map(([path, each]) => ({ ref: path, dependsOn: linked(path, each) })),
    ],
  };
}

const print = (folder: string) => process.stdout.write(`${JSON.stringify(describe(folder), null, 2)}\n`);

const [given] = process.argv.slice(2);
if (given !== undefined) print(resolve(given));
else {
  const folder = mkdtempSync(join(tmpdir(), "inference-sbom-"));
  try {
    for (const file of ["package.json", "package-lock.json"]) copyFileSync(file, join(folder, file));
    const args = ["install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder];
    execFileSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    print(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
