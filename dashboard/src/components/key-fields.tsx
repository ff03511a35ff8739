import type { ApiError } from "../api/client.ts";
import { useSession } from "../api/session.ts";
import { count } from "../lib/format.ts";
import type { CacheUse, KeyForm, Period } from "../lib/key-form.ts";
import { timeZone } from "../lib/time.ts";
import { AlertChannels } from "./alert-channels.tsx";
import { Field, TextArea, UsdField } from "./field.tsx";
import { Select } from "./select.tsx";

interface Props {
  readonly form: KeyForm;
  readonly onChange: (form: KeyForm) => void;
  /** The service's error about one of the fields. */
  readonly wrong: ApiError | undefined;
}

const periods = [
  { value: "day", label: "per day" },
  { value: "week", label: "per week" },
  { value: "month", label: "per month" },
  { value: "total", label: "in total" },
];

const cacheUses = [
  { value: "off", label: "Off, unless a call asks for it" },
  { value: "on", label: "On, unless a call declines it" },
  { value: "locked", label: "Always off" },
];

const scopes = [
  { scope: "inference", label: "inference: call models" },
  { scope: "manage", label: "manage: keys, usage, top-ups" },
] as const;

const limits = [
  { limit: "requests_per_minute", label: "Requests per minute" },
  { limit: "tokens_per_minute", label: "Tokens per minute" },
  { limit: "concurrent_requests", label: "Concurrent requests" },
] as const;

export function KeyFields({ form, onChange, wrong }: Props) {
  const { service } = useSession();
  const set = (change: Partial<KeyForm>) => onChange({ ...form, ...change });
  const errorOf = (field: string) => (wrong?.param?.startsWith(field) ? wrong.message : undefined);
  return (
    <>
      <Field
        label="Name"
        placeholder="What uses it"
        required
        pattern=".*\S.*"
        title="A name that says what uses the key"
        maxLength={100}
        value={form.name}
        error={errorOf("name")}
        onChange={(event) => set({ name: event.target.value })}
      />
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1.5 text-xs font-medium text-muted">Scopes</legend>
        {scopes.map(({ scope, label }) => (
          <label key={scope} className="flex min-h-8 items-center gap-2.5">
            <input
              type="checkbox"
              className="size-4 accent-accent"
              checked={form.scopes.includes(scope)}
              onChange={({ target }) =>
                set({ scopes: target.checked ? [...form.scopes, scope] : form.scopes.filter((each) => each !== scope) })
              }
            />
            {label}
          </label>
        ))}
      </fieldset>
      <div className="grid grid-cols-2 gap-3">
        <UsdField
          label="Budget in USD"
          placeholder="No limit"
          value={form.budgetUsd}
          error={errorOf("budget")}
          onChange={(budgetUsd) => set({ budgetUsd })}
        />
        <Select
          label="Budget period"
          options={periods}
          value={form.period}
          onChange={(period) => set({ period: period as Period })}
        />
      </div>
      {form.budgetUsd !== "" && <AlertChannels what="80 and 100 % of it" event="budget.threshold" />}
      <TextArea
        label="Models"
        rows={2}
        placeholder="All models"
        hint="One a line, such as local/chat, or openai/* for all of a provider"
        value={form.models}
        error={errorOf("models")}
        onChange={(event) => set({ models: event.target.value })}
      />
      <Field
        label="Expires"
        type="datetime-local"
        hint={`In your time zone, ${timeZone}`}
        value={form.expires}
        error={errorOf("expires_at")}
        onChange={(event) => set({ expires: event.target.value })}
      />
      <label className="flex min-h-8 items-center gap-2.5">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          checked={form.marksPrompts}
          onChange={({ target }) => set({ marksPrompts: target.checked })}
        />
        Prompt cache: mark prompts of models that need it
      </label>
      <div className="grid grid-cols-2 gap-3">
        <Select
          label="Response cache"
          options={cacheUses}
          value={form.cacheUse}
          onChange={(cacheUse) => set({ cacheUse: cacheUse as CacheUse })}
        />
        <Field
          label="Seconds in the cache"
          type="number"
          min={1}
          max={86_400}
          placeholder="300"
          value={form.cacheTtl}
          error={errorOf("cache")}
          onChange={(event) => set({ cacheTtl: event.target.value })}
        />
      </div>
      <details>
        <summary className="text-xs font-medium text-muted">Rate limits</summary>
        <div className="mt-3 grid gap-3 sm:grid-cols-3">
          {limits.map(({ limit, label }) => (
            <Field
              key={limit}
              label={label}
              type="number"
              min={1}
              placeholder={`Default: ${count(service.rate_limits[limit])}`}
              value={form.limits[limit]}
              error={errorOf(`limits.${limit}`)}
              onChange={(event) => set({ limits: { ...form.limits, [limit]: event.target.value } })}
            />
          ))}
        </div>
      </details>
    </>
  );
}
