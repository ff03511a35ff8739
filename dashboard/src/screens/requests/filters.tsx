import { useQuery } from "@tanstack/react-query";
import { useKeyOptions } from "../../api/keys.ts";
import { modelsQuery } from "../../api/models.ts";
import { useProviderKeyOptions } from "../../api/provider-keys.ts";
import type { Filters as Values } from "../../api/requests.ts";
import { usageQuery } from "../../api/usage.ts";
import { Button } from "../../components/button.tsx";
import { DayRange } from "../../components/day-range.tsx";
import { optionsOf, Select } from "../../components/select.tsx";
import { TextFilter } from "../../components/text-filter.tsx";
import { daysBefore } from "../../lib/format.ts";
import { callStatuses } from "../../lib/statuses.ts";
import { useToday } from "../../lib/time.ts";

/** Endpoints that were used in these days can be chosen. */
const usedDays = 90;

interface Props {
  readonly values: Values;
  readonly onChange: (values: Values) => void;
}

export function Filters({ values, onChange }: Props) {
  const keys = useKeyOptions();
  const today = useToday();
  const { data: used = [] } = useQuery(
    usageQuery({ from: daysBefore(today, usedDays - 1), to: today, groupBy: ["endpoint"] }),
  );
  const { data: models = [] } = useQuery(modelsQuery);
  const providerKeys = useProviderKeyOptions();
  const set = (name: keyof Values) => (value: string) => onChange({ ...values, [name]: value || undefined });
  const { provider_key } = values;
  // A deleted key has calls still.
  const isOther = provider_key && !providerKeys.some(({ value }) => value === provider_key);
  const withOwn = isOther ? [{ value: provider_key, label: provider_key }, ...providerKeys] : providerKeys;
  return (
    <search className="grid grid-cols-2 items-end gap-3 sm:grid-cols-3 lg:grid-cols-5">
      <Select label="Status" value={values.status ?? ""} options={callStatuses} onChange={set("status")} />
      <Select
        label="Model"
        value={values.model ?? ""}
        options={optionsOf(
          "All models",
          models.map(({ id }) => id),
          values.model,
        )}
        onChange={set("model")}
      />
      <Select
        label="Endpoint"
        value={values.endpoint ?? ""}
        options={optionsOf(
          "All endpoints",
          used.flatMap(({ endpoint }) => endpoint ?? []),
          values.endpoint,
        )}
        onChange={set("endpoint")}
      />
      {keys.length > 0 && (
        <Select
          label="Key"
          value={values.key ?? ""}
          options={[{ value: "", label: "All keys" }, ...keys]}
          onChange={set("key")}
        />
      )}
      <TextFilter label="Tag" value={values.tag} onChange={set("tag")} />
      <TextFilter label="Session" value={values.session_id} onChange={set("session_id")} />
      <TextFilter label="User" value={values.user} onChange={set("user")} />
      {withOwn.length > 0 && (
        <Select
          label="Provider key"
          value={provider_key ?? ""}
          options={[{ value: "", label: "All calls" }, ...withOwn]}
          onChange={set("provider_key")}
        />
      )}
      <DayRange from={values.from} to={values.to} onChange={(name, day) => set(name)(day)} />
      <Button look="quiet" disabled={Object.values(values).every((value) => !value)} onClick={() => onChange({})}>
        Clear
      </Button>
    </search>
  );
}
