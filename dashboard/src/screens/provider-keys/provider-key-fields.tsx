import { useKeyOptions } from "../../api/keys.ts";
import type { KeyProvider } from "../../api/provider-keys.ts";
import { Field, TextArea } from "../../components/field.tsx";
import { Select } from "../../components/select.tsx";
import type { Mode, ProviderKeyForm, Setting } from "./provider-key-form.ts";

interface Props {
  readonly form: ProviderKeyForm;
  readonly provider: KeyProvider;
  readonly onChange: (form: ProviderKeyForm) => void;
  readonly errorOf: (field: string) => string | undefined;
}

export const modes: Readonly<Record<Mode, string>> = {
  first: "Before the service's own key",
  only: "Always, never the service's own key",
  last: "After the service's own key",
};

const settingLabels: Readonly<Record<Exclude<Setting, "deployments">, string>> = {
  resource: "Resource",
  region: "Region",
  project: "Project",
};

function CloudFields({ form, provider, onChange, errorOf }: Props) {
  const { settings, region, models } = provider;
  const { config } = form;
  const set = (setting: Setting) => (text: string) => onChange({ ...form, config: { ...config, [setting]: text } });
  const hints: Partial<Record<Setting, string>> = {
    resource: "Its name in the address, such as my-resource",
    project: "Left empty: that of the service account",
    ...(region && { region: `Left empty: ${region}` }),
  };
  const [firstModel = "gpt-5"] = Object.values(models);
  return settings.map((setting) =>
    setting === "deployments" ? (
      <TextArea
        key={setting}
        label="Deployments"
        rows={2}
        placeholder={`${firstModel} = my-deployment`}
        hint="One a line, if a deployment is not named as its model"
        value={config.deployments}
        error={errorOf("config.deployments")}
        onChange={({ target }) => set(setting)(target.value)}
      />
    ) : (
      <Field
        key={setting}
        label={settingLabels[setting]}
        required={setting === "resource"}
        hint={hints[setting]}
        value={config[setting]}
        error={errorOf(`config.${setting}`)}
        onChange={({ target }) => set(setting)(target.value)}
      />
    ),
  );
}

export function ProviderKeyFields(props: Props) {
  const { form, onChange, errorOf } = props;
  const set = (change: Partial<ProviderKeyForm>) => onChange({ ...form, ...change });
  const isLimited = form.models !== "" || form.keyIds.length > 0;
  return (
    <>
      <CloudFields {...props} />
      <Field
        label="Name"
        placeholder="Whose account it is"
        maxLength={100}
        value={form.name}
        error={errorOf("name")}
        onChange={({ target }) => set({ name: target.value })}
      />
      <div className="grid gap-3 sm:grid-cols-[minmax(0,1fr)_6rem]">
        <Select
          label="Used"
          value={form.mode}
          options={Object.entries(modes).map(([value, label]) => ({ value, label }))}
          onChange={(mode) => set({ mode: mode as Mode })}
        />
        <Field
          label="Priority"
          type="number"
          required
          min={-1000}
          max={1000}
          value={form.priority}
          error={errorOf("priority")}
          onChange={({ target }) => set({ priority: target.value })}
        />
      </div>
      <p className="text-xs text-muted">Keys with lower numbers are tried first.</p>
      <details open={isLimited || errorOf("models") !== undefined}>
        <summary className="text-xs font-medium text-muted">Only for some models or keys</summary>
        <div className="mt-3 flex flex-col gap-3">
          <TextArea
            label="Models"
            rows={2}
            placeholder="All models"
            hint="One a line, such as openai/gpt-5"
            value={form.models}
            error={errorOf("models")}
            onChange={({ target }) => set({ models: target.value })}
          />
          <KeyChoice chosen={form.keyIds} onChange={(keyIds) => set({ keyIds })} />
        </div>
      </details>
    </>
  );
}

interface ChoiceProps {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

function KeyChoice({ chosen, onChange }: ChoiceProps) {
  const options = useKeyOptions();
  const others = chosen.filter((id) => !options.some(({ value }) => value === id));
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1.5 text-xs font-medium text-muted">Calls of these keys (none chosen: of all)</legend>
      {[...options, ...others.map((id) => ({ value: id, label: id }))].map(({ value, label }) => (
        <label key={value} className="flex min-h-8 items-center gap-2.5 wrap-anywhere">
          <input
            type="checkbox"
            className="size-4 shrink-0 accent-accent"
            checked={chosen.includes(value)}
            onChange={({ target }) =>
              onChange(target.checked ? [...chosen, value] : chosen.filter((each) => each !== value))
            }
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}
