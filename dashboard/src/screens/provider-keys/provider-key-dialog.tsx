import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../../api/client.ts";
import {
  createProviderKey,
  type KeyProvider,
  type ProviderKey,
  providerKeysChanged,
  updateProviderKey,
} from "../../api/provider-keys.ts";
import { FormDialog } from "../../components/dialog.tsx";
import { Select } from "../../components/select.tsx";
import { toast } from "../../components/toast.tsx";
import { CredentialFields } from "./credential-fields.tsx";
import { ProviderKeyFields } from "./provider-key-fields.tsx";
import {
  type CredentialInput,
  credentialForms,
  credentialOf,
  emptyCredential,
  formOf,
  type ProviderKeyForm,
  toNewProviderKey,
  toPatch,
} from "./provider-key-form.ts";

/** The outcome of a check, as far as the service stored the key. */
export const checkedText = ({ status }: ProviderKey): string => {
  if (status === "ok") return "The provider accepts the key";
  return status === "unknown" ? "Saved, but the provider has not checked it" : "Saved. See what the provider said";
};

/** The service's error about a field. Without a field that shows it, the dialog does. */
function fieldErrors(error: unknown, shown: readonly string[]) {
  const { param, message } = error instanceof ApiError ? error : {};
  const field = shown.find((each) => each === param || param?.startsWith(`${each}.`));
  return {
    errorOf: (name: string) => (name === field ? message : undefined),
    other: field === undefined ? error : null,
  };
}

const namesOf = ({ form }: CredentialInput) => credentialForms[form].fields.map(({ name }) => name);
const fieldNames = ["name", "priority", "models"];
const settingNames = ({ settings }: KeyProvider) => settings.map((setting) => `config.${setting}`);

interface NewProps {
  readonly providers: readonly KeyProvider[];
  readonly onClose: () => void;
}

export function NewDialog({ providers, onClose }: NewProps) {
  const queries = useQueryClient();
  const [form, setForm] = useState(() => formOf(undefined, providers));
  const provider = providers.find(({ id }) => id === form.provider);
  const [credential, setCredential] = useState(() => emptyCredential(provider));
  const save = useMutation({
    mutationFn: () => createProviderKey(toNewProviderKey(form, credential, provider?.settings ?? [])),
    // The credential must not outlive the dialog.
    gcTime: 0,
    onSuccess: async (made) => {
      await providerKeysChanged(queries);
      toast(checkedText(made));
      onClose();
    },
  });
  if (!provider) return null;
  const shown = [...namesOf(credential), ...fieldNames, ...settingNames(provider)];
  const { errorOf, other } = fieldErrors(save.error, shown);
  function choose(id: string) {
    setForm({ ...form, provider: id });
    setCredential(emptyCredential(providers.find((each) => each.id === id)));
    save.reset();
  }
  return (
    <FormDialog
      title="New provider key"
      action={save.isPending ? "Checking it" : "Check and save"}
      busy={save.isPending}
      error={other}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <Select
        label="Provider"
        value={form.provider}
        options={providers.map(({ id, region }) => ({ value: id, label: region ? `${id} (${region})` : id }))}
        onChange={choose}
      />
      <CredentialFields provider={provider} value={credential} onChange={setCredential} errorOf={errorOf} />
      <ProviderKeyFields form={form} provider={provider} onChange={setForm} errorOf={errorOf} />
    </FormDialog>
  );
}

interface Props {
  readonly target: ProviderKey;
  readonly provider: KeyProvider;
  readonly onClose: () => void;
}

export function EditDialog({ target, provider, onClose }: Props) {
  const queries = useQueryClient();
  const [form, setForm] = useState<ProviderKeyForm>(() => formOf(target, []));
  const save = useMutation({
    mutationFn: () => updateProviderKey(target.id, toPatch(form, target, provider.settings)),
    onSuccess: async () => {
      await providerKeysChanged(queries);
      toast("Saved");
      onClose();
    },
  });
  const { errorOf, other } = fieldErrors(save.error, [...fieldNames, ...settingNames(provider)]);
  return (
    <FormDialog
      title="Edit the provider key"
      action="Save"
      busy={save.isPending}
      error={other}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <ProviderKeyFields form={form} provider={provider} onChange={setForm} errorOf={errorOf} />
    </FormDialog>
  );
}

export function RotateDialog({ target, provider, onClose }: Props) {
  const queries = useQueryClient();
  const [credential, setCredential] = useState(() => emptyCredential(provider));
  const save = useMutation({
    mutationFn: () => updateProviderKey(target.id, { credential: credentialOf(credential) }),
    gcTime: 0,
    onSuccess: async (changed) => {
      await providerKeysChanged(queries);
      toast(checkedText(changed));
      onClose();
    },
  });
  const { errorOf, other } = fieldErrors(save.error, namesOf(credential));
  return (
    <FormDialog
      title="Replace the credential"
      action={save.isPending ? "Checking it" : "Check and replace"}
      busy={save.isPending}
      error={other}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <p className="text-muted">
        Calls use the new one within a minute. If the provider refuses it, {target.label} stays.
      </p>
      <CredentialFields provider={provider} value={credential} onChange={setCredential} errorOf={errorOf} />
    </FormDialog>
  );
}
