import type { KeyProvider, NewProviderKey, ProviderKey, ProviderKeyPatch } from "../../api/provider-keys.ts";

type CredentialForm = KeyProvider["credentials"][number];
export type Setting = KeyProvider["settings"][number];
export type Mode = ProviderKey["mode"];

interface CredentialField {
  /** The field that the service's errors name. */
  readonly name: string;
  readonly label: string;
  readonly isSecret?: true;
  readonly isOptional?: true;
}

interface Form {
  readonly label: string;
  readonly fields: readonly CredentialField[];
  /** The text of a file, sent as it is. */
  readonly isFile?: true;
}

const secret = { isSecret: true } as const;

export const credentialForms: Readonly<Record<CredentialForm, Form>> = {
  api_key: { label: "API key", fields: [{ name: "credential", label: "API key", ...secret }] },
  entra_application: {
    label: "Microsoft Entra application",
    fields: [
      { name: "credential.tenant_id", label: "Tenant id" },
      { name: "credential.client_id", label: "Client id" },
      { name: "credential.client_secret", label: "Client secret", ...secret },
    ],
  },
  aws_access_key: {
    label: "AWS access key",
    fields: [
      { name: "credential.access_key_id", label: "Access key id" },
      { name: "credential.secret_access_key", label: "Secret access key", ...secret },
      { name: "credential.session_token", label: "Session token, if it is temporary", ...secret, isOptional: true },
    ],
  },
  service_account: {
    label: "Google service account",
    fields: [{ name: "credential", label: "Key file (JSON)" }],
    isFile: true,
  },
};

/** A credential as the user types it: texts by the names of their fields. It is nowhere but in an open dialog. */
export interface CredentialInput {
  readonly form: CredentialForm;
  readonly texts: Readonly<Record<string, string>>;
}

export const emptyCredential = (provider: KeyProvider | undefined): CredentialInput => ({
  form: provider?.credentials[0] ?? "api_key",
  texts: {},
});

export function credentialOf({ form, texts }: CredentialInput): NewProviderKey["credential"] {
  if (texts["credential"] !== undefined) return texts["credential"].trim();
  const given = credentialForms[form].fields.map(({ name }) => [name.replace("credential.", ""), texts[name]?.trim()]);
  return Object.fromEntries(given.filter(([, text]) => text));
}

/** The fields as the user types them; empty means not set. */
export interface ProviderKeyForm {
  readonly provider: string;
  readonly name: string;
  readonly mode: Mode;
  readonly priority: string;
  /** One per line. */
  readonly models: string;
  readonly keyIds: readonly string[];
  /** Deployments have one per line: the provider's name of a model, and that of its deployment. */
  readonly config: Readonly<Record<Setting, string>>;
}

const lineOf = ([model, deployment]: readonly [string, string]) => `${model} = ${deployment}`;

export const formOf = (key: ProviderKey | undefined, providers: readonly KeyProvider[]): ProviderKeyForm => ({
  provider: key?.provider ?? providers[0]?.id ?? "",
  name: key?.name ?? "",
  mode: key?.mode ?? "first",
  priority: String(key?.priority ?? 0),
  models: key?.models?.join("\n") ?? "",
  keyIds: key?.key_ids ?? [],
  config: {
    resource: key?.config.resource ?? "",
    region: key?.config.region ?? "",
    project: key?.config.project ?? "",
    deployments: Object.entries(key?.config.deployments ?? {})
      .map(lineOf)
      .join("\n"),
  },
});

const linesOf = (text: string) => text.split("\n").filter((line) => line.trim() !== "");

const deploymentsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    linesOf(text).map((line) => {
      const [model = "", ...deployment] = line.split("=");
      return [model.trim(), deployment.join("=").trim()];
    }),
  );

function configOf({ config: { deployments, ...texts } }: ProviderKeyForm, settings: readonly Setting[]) {
  const given = Object.entries(texts).filter(([name, text]) => settings.some((each) => each === name) && text.trim());
  return {
    ...Object.fromEntries(given.map(([name, text]) => [name, text.trim()])),
    ...(settings.includes("deployments") && deployments.trim() && { deployments: deploymentsOf(deployments) }),
  };
}

const common = ({ name, mode, priority, models, keyIds }: ProviderKeyForm) => {
  const listed = models.split(/[\s,]+/).filter(Boolean);
  return {
    name: name.trim() || null,
    mode,
    priority: Number(priority),
    models: listed.length > 0 ? listed : null,
    key_ids: keyIds.length > 0 ? [...keyIds] : null,
  };
};

/** Omits the configuration if it stays the same, because the service checks a new one. */
export function toPatch(form: ProviderKeyForm, key: ProviderKey, settings: readonly Setting[]): ProviderKeyPatch {
  const config = configOf(form, settings);
  const isSame = JSON.stringify(config) === JSON.stringify(configOf(formOf(key, []), settings));
  return { ...common(form), ...(!isSame && { config }) };
}

export function toNewProviderKey(
  form: ProviderKeyForm,
  credential: CredentialInput,
  settings: readonly Setting[],
): NewProviderKey {
  const { name, ...rest } = common(form);
  const config = configOf(form, settings);
  return {
    ...rest,
    ...(name !== null && { name }),
    ...(Object.keys(config).length > 0 && { config }),
    provider: form.provider,
    credential: credentialOf(credential),
  };
}
