import { z } from "zod";
import { cloudParts, regionPattern, type Upstream } from "#catalog";
import { invalidValue } from "#errors";
import { validate } from "#formats";
import type { ProviderKeyConfig } from "#provider-keys";

/** Credentials and configurations of provider keys, as customers give them. Errors name the field and quote nothing. */

type ProviderName = Upstream["provider"];

/** A credential as a string, which may be JSON, or as an object. */
export type GivenCredential = string | Readonly<Record<string, unknown>>;

interface Credential {
  /** The text that is sealed: an API key, or JSON. */
  readonly text: string;
  readonly label: string;
  /** The project that a service account belongs to. */
  readonly project?: string | undefined;
}

export const maxCredential = 16 * 1024;
/** Long enough that the label tells little of it. */
const minKey = 16;

/** Printable ASCII without spaces, because it is sent in a header. */
const keyText = /^[\x21-\x7E]+$/;
const secretText = (max: number) => z.string().min(1).max(max).regex(keyText, "must be printable ASCII without spaces");
const projectPattern = /^[a-z][a-z0-9-]{4,61}[a-z0-9]$/;
const pem = /^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+\n-----END PRIVATE KEY-----\n?$/;

const ends = (text: string) => text.slice(-4);
/** `sk-...AbCd`, or `...AbCd` for a key without a prefix. */
const labelOf = (key: string) => `${/^[A-Za-z0-9]{1,6}[-_]/.exec(key)?.[0] ?? ""}...${ends(key)}`;

const json = (value: object) => JSON.stringify(value);

const awsKeys = z.strictObject({
  access_key_id: secretText(128).min(minKey),
  secret_access_key: secretText(256).min(minKey),
  session_token: secretText(8_192).optional(),
});
const entraApp = z.strictObject({
  tenant_id: z.string().regex(/^[\w.-]{1,64}$/, "is not the id of a tenant"),
  client_id: z.string().regex(/^[\w-]{8,64}$/, "is not the id of an application"),
  client_secret: secretText(512).min(minKey),
});
/** Everything else is dropped: other fields name addresses to which a crafted file would send tokens. */
const serviceAccount = z.object({
  client_email: z
    .string()
    .max(320)
    .regex(/^[\w.+-]+@[\w.-]+$/, "is not an e-mail address"),
  private_key: z.string().max(8_192).regex(pem, "is not a private key in PEM"),
  private_key_id: z
    .string()
    .regex(/^\w{1,128}$/, "is not the id of a key")
    .optional(),
  project_id: z.string().regex(projectPattern, "is not the id of a project").optional(),
});

/** The forms of a credential: text, and the JSON objects that some providers take as well. */
export const credentialForms = ["api_key", "entra_application", "aws_access_key", "service_account"] as const;
type CredentialForm = (typeof credentialForms)[number];

interface ObjectReader {
  readonly form: CredentialForm;
  read(given: unknown): Credential;
}

/** Errors name the field within the credential: `credential.client_secret`. */
function inCredential<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const body: { readonly credential: unknown } = validate(z.object({ credential: schema as z.ZodType }), {
    credential: given,
  });
  return body.credential as z.output<Schema>;
}

/** The providers that take JSON. */
const objects: Readonly<Partial<Record<ProviderName, ObjectReader>>> = {
  azure: {
    form: "entra_application",
    read(given) {
      const app = inCredential(entraApp, given);
      return { text: json(app), label: app.client_id };
    },
  },
  bedrock: {
    form: "aws_access_key",
    read(given) {
      const keys = inCredential(awsKeys, given);
      return { text: json(keys), label: `${keys.access_key_id.slice(0, 4)}...${ends(keys.access_key_id)}` };
    },
  },
  vertex: {
    form: "service_account",
    read(given) {
      const account = inCredential(serviceAccount, given);
      return { text: json(account), label: account.client_email, project: account.project_id };
    },
  },
};

export const formsFor = (provider: ProviderName): readonly CredentialForm[] => {
  const { form } = objects[provider] ?? {};
  return form ? ["api_key", form] : ["api_key"];
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidValue("credential", "credential: is not valid JSON.");
  }
}

export function readCredential(provider: ProviderName, given: GivenCredential): Credential {
  const reader = objects[provider];
  const isJson = typeof given !== "string" || (reader !== undefined && given.trimStart().startsWith("{"));
  if (!isJson) {
    if (given.length < minKey) throw invalidValue("credential", `credential: must have at least ${minKey} characters.`);
    if (!keyText.test(given)) throw invalidValue("credential", "credential: must be printable ASCII without spaces.");
    return { text: given, label: labelOf(given) };
  }
  if (!reader) throw invalidValue("credential", "credential: must be a string for this provider.");
  const credential = reader.read(typeof given === "string" ? parsed(given) : given);
  if (credential.text.length > maxCredential)
    throw invalidValue("credential", `credential: has more than ${maxCredential} characters.`);
  return credential;
}

const maxDeployments = 100;
const parts = {
  resource: z.string().regex(/^[a-z0-9-]{2,64}$/, "must be lower-case letters, digits and hyphens"),
  region: z.string().regex(regionPattern, "is not the name of a region"),
  project: z.string().regex(projectPattern, "is not the id of a project"),
};
/** The schema in the API. Which fields a provider takes is checked by `readConfig`. */
export const configInput = z
  .strictObject({
    resource: parts.resource.optional().describe("Azure: the name of the resource, in its address"),
    region: parts.region.optional().describe("Bedrock, Vertex: the region, in the address"),
    project: parts.project.optional().describe("Vertex: the project; by default that of the service account"),
    deployments: z
      .record(z.string().min(1).max(200), z.string().regex(/^[\w.-]{1,64}$/, "is not the name of a deployment"))
      .refine((given) => Object.keys(given).length <= maxDeployments, `has more than ${maxDeployments} deployments`)
      .optional()
      .describe("Azure: the names of deployments, by the upstream's name for the model"),
  })
  .describe("What a cloud needs beside the credential; other providers take none");

/** The settings that a provider takes. */
export const settingsFor = (provider: ProviderName): readonly (keyof ProviderKeyConfig)[] => [
  ...(cloudParts[provider] ?? []),
  ...(provider === "azure" ? (["deployments"] as const) : []),
];

/** Throws 400 for a part that the provider needs, or does not have. */
export function readConfig(
  { provider, region }: Pick<Upstream, "provider" | "region">,
  given: ProviderKeyConfig,
  project?: string,
): ProviderKeyConfig {
  const taken: readonly string[] = settingsFor(provider);
  const extra = Object.keys(given).find((field) => !taken.includes(field));
  if (extra !== undefined)
    throw invalidValue(`config.${extra}`, `config.${extra}: the provider does not have this setting.`);
  const config = { ...(project !== undefined && taken.includes("project") && { project }), ...given };
  const known = { ...(region !== undefined && { region }), ...config };
  for (const part of cloudParts[provider] ?? [])
    if (known[part] === undefined) throw invalidValue(`config.${part}`, `config.${part}: is missing.`);
  return config;
}
