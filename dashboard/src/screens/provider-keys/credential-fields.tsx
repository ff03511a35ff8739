import type { KeyProvider } from "../../api/provider-keys.ts";
import { Field, TextArea } from "../../components/field.tsx";
import { Select } from "../../components/select.tsx";
import { type CredentialInput, credentialForms } from "./provider-key-form.ts";

interface Props {
  readonly provider: Pick<KeyProvider, "credentials">;
  readonly value: CredentialInput;
  readonly onChange: (value: CredentialInput) => void;
  readonly errorOf: (field: string) => string | undefined;
}

/** Browsers neither remember nor check the spelling of a credential, for which some send texts to a server. */
const notStored = { autoComplete: "off", spellCheck: false, required: true } as const;

export function CredentialFields({ provider: { credentials }, value, onChange, errorOf }: Props) {
  const { form, texts } = value;
  const { fields, isFile } = credentialForms[form];
  return (
    <>
      {credentials.length > 1 && (
        <Select
          label="Credential"
          value={form}
          options={credentials.map((each) => ({ value: each, label: credentialForms[each].label }))}
          onChange={(chosen) => onChange({ form: credentials.find((each) => each === chosen) ?? form, texts: {} })}
        />
      )}
      {fields.map(({ name, label, isSecret, isOptional }) => {
        const field = {
          label,
          value: texts[name] ?? "",
          error: errorOf(name),
          onChange: ({ target }: { readonly target: { readonly value: string } }) =>
            onChange({ form, texts: { ...texts, [name]: target.value } }),
          ...notStored,
        };
        return isFile ? (
          <TextArea key={name} rows={6} {...field} />
        ) : (
          <Field key={name} type={isSecret ? "password" : "text"} {...field} required={!isOptional} />
        );
      })}
    </>
  );
}
