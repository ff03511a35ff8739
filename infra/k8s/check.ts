/**
 * `npm run check:chart`: lints and renders the chart with Helm for each file in `infra/k8s/values`, validates every
 * object against the schemas of Kubernetes, KEDA and the Prometheus operator, and loads the service's configuration
 * from the environment of every container. Needs Go, which builds Helm and fetches the schemas once, into its own cache
 * and ours.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { loadConfig } from "#platform/config";
import { cacheDirOf } from "../embedded/index.ts";
import { createValidator } from "./strict-schemas.ts";

const helmVersion = "v3.22.0";
const kubernetesVersion = "v1.37.2";
const chart = "infra/k8s/chart";
const values = "infra/k8s/values";
const cache = join(cacheDirOf(process.env), `helm-${helmVersion}`);
const helm = join(cache, "helm");

interface Variable {
  readonly name: string;
  readonly value?: string;
}
interface Labelled {
  readonly matchLabels: Readonly<Record<string, string>>;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly selector?: Labelled | Readonly<Record<string, string>>;
    readonly podSelector?: Labelled;
    readonly egress?: readonly { readonly to?: readonly unknown[] }[];
    readonly scaleTargetRef?: { readonly name: string };
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly { readonly env: readonly Variable[]; readonly command: readonly string[] }[];
      };
    };
  };
}

const go = (args: readonly string[], env = {}) =>
  execFileSync("go", args, {
    encoding: "utf8",
    env: { ...process.env, GOFLAGS: "-mod=mod", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });

function moduleFolder(module: string): string {
  return (JSON.parse(go(["mod", "download", "-json", module])) as { Dir: string }).Dir;
}

function validator() {
  const keda = join(moduleFolder("github.com/kedacore/keda/v2@v2.21.0"), "config/crd/bases");
  const operator = moduleFolder("github.com/prometheus-operator/prometheus-operator@v0.85.0");
  return createValidator(
    join(moduleFolder(`k8s.io/kubernetes@${kubernetesVersion}`), "api", "openapi-spec", "swagger.json"),
    [
      join(keda, "keda.sh_scaledobjects.yaml"),
      join(keda, "keda.sh_triggerauthentications.yaml"),
      join(operator, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
      join(operator, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
    ],
  );
}

const render = (args: readonly string[]) =>
  spawnSync(helm, ["template", "test", chart, "--namespace", "test", "--kube-version", kubernetesVersion, ...args], {
    encoding: "utf8",
  });

/** Examples of the variables that a Secret holds. */
const secretValues: Readonly<Record<string, string>> = {
  REDIS_URL: "redis://redis:6379",
  CACHE_REDIS_URL: "redis://cache:6379",
  MONGODB_URI: "mongodb://mongo/inference",
  OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20x",
  SECRETS_PRIVATE_KEYS: `${"A".repeat(43)}=`,
  SOLANA_RPC_URL: "https://rpc.example.com",
};

/**
 * Finds objects that select or scale pods that the chart lacks, and environments in which the service does not start.
 */
function faultsAmong(manifests: readonly Manifest[]): string[] {
  const pods = manifests.flatMap(({ spec }) => spec?.template ?? []);
  const config = manifests.find(({ kind }) => kind === "ConfigMap")?.data;
  return manifests.flatMap(({ kind, metadata, spec }) => {
    const faults: string[] = [];
    const name = `${kind} ${metadata.name}`;
    const selector = spec?.podSelector ?? (kind === "ServiceMonitor" ? undefined : spec?.selector);
    const labels = Object.entries((selector && "matchLabels" in selector ? selector.matchLabels : selector) ?? {});
    if (!pods.some((pod) => labels.every(([label, value]) => pod.metadata.labels[label] === value)))
      faults.push(`${name} selects no pod`);
    if (spec?.egress?.some(({ to = [] }) => to.length === 0)) faults.push(`${name} lets pods reach everyone`);
    const target = spec?.scaleTargetRef?.name;
    if (target && !manifests.some((each) => each.kind === "Deployment" && each.metadata.name === target))
      faults.push(`${name} scales no Deployment`);
    for (const { env, command } of spec?.template?.spec.containers ?? []) {
      const names = env.map((variable) => variable.name);
      if (new Set(names).size < names.length) faults.push(`${name} sets a variable twice`);
      const given = env.map((variable) => [
        variable.name,
        variable.value ?? secretValues[variable.name] ?? "x".repeat(32),
      ]);
      // A migration needs only MongoDB, and no ConfigMap exists before an install.
      if (command.includes("infra/cli/migrate.ts")) {
        if (!names.includes("MONGODB_URI")) faults.push(`${name} has no MONGODB_URI`);
        continue;
      }
      try {
        loadConfig({ ...config, ...Object.fromEntries(given) });
      } catch (error) {
        faults.push(`${name}: ${(error as Error).message}`);
      }
    }
    return faults;
  });
}

/** Values that Helm must refuse, and the name that the refusal must contain. */
const refused = [
  { set: "config.DRAIN_TIME=1", names: "DRAIN_TIME" },
  { set: "config.DRAIN_GRACE=null", names: "DRAIN_GRACE" },
  { set: "config.OPENAI_API_KEY=sk-1", names: "OPENAI_API_KEY" },
  { set: "secrets.api.BUYBACK_WALLET_KEY.name=a", names: "BUYBACK_WALLET_KEY" },
  { set: "secrets.all.REDIS_URL=redis://redis", names: "REDIS_URL" },
  { set: "config.S3_ENDPOINT=null", names: "S3_ENDPOINT" },
  { set: "image.repository=", names: "repository" },
  { set: "pools.maintenance=null", names: "maintenance" },
  { set: "pools.video.concurrency=1", names: "video" },
  { set: "worker.autoscaling.minReplicas=0", names: "minReplicas" },
  { set: "keda.enabled=true", names: "serverAddress" },
  { set: "networkPolicy.stores[0].to=null", names: "stores" },
];

if (!existsSync(helm)) go(["install", `helm.sh/helm/v3/cmd/helm@${helmVersion}`], { GOBIN: cache });
const validate = validator();
const faults: string[] = [];
for (const file of readdirSync(values)) {
  const from = ["--values", join(values, file)];
  const lint = spawnSync(helm, ["lint", "--strict", chart, "--kube-version", kubernetesVersion, ...from], {
    encoding: "utf8",
  });
  if (lint.status !== 0) faults.push(`${file}: ${lint.stdout}${lint.stderr}`);
  const rendered = render(from);
  if (rendered.status !== 0) faults.push(`${file}: ${rendered.stderr}`);
  const manifests = parseAllDocuments(rendered.stdout).map((document) => document.toJS() as Manifest);
  const found = [
    ...manifests.flatMap((manifest) =>
      validate(manifest, manifest).map((fault) => `${manifest.kind} ${manifest.metadata.name}: ${fault}`),
    ),
    ...faultsAmong(manifests),
  ];
  faults.push(...found.map((fault) => `${file}: ${fault}`));
  process.stdout.write(`${file}: ${manifests.length} objects\n`);
}
for (const { set, names } of refused) {
  const { status, stderr } = render(["--values", join(values, "minimal.yaml"), "--set", set]);
  if (status === 0 || !stderr.includes(names)) faults.push(`--set ${set} is not refused by name: ${stderr}`);
}
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.stdout.write(`${faults.length} faults\n`);
process.exit(faults.length > 0 ? 1 : 0);
