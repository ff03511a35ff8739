import { useQuery } from "@tanstack/react-query";
import { useKeyOptions } from "../../api/keys.ts";
import { usageQuery } from "../../api/usage.ts";
import { Button } from "../../components/button.tsx";
import { DayRange } from "../../components/day-range.tsx";
import { optionsOf, Select } from "../../components/select.tsx";
import { TextFilter } from "../../components/text-filter.tsx";
import { groups, ranges, type UsageSearch, type UsageView } from "../../lib/usage.ts";

interface Props {
  readonly view: UsageView;
  readonly onChange: (changed: UsageSearch) => void;
  readonly isClear: boolean;
  readonly onClear: () => void;
}

export function Filters({ view, onChange, isClear, onClear }: Props) {
  const { range, from, to, interval, intervals, by, filters } = view;
  const keys = useKeyOptions();
  const { data: used = [] } = useQuery(usageQuery({ from, to, groupBy: ["model", "endpoint"] }));
  const valuesOf = (name: "model" | "endpoint") => used.flatMap((row) => row[name] ?? []);
  const set = (name: keyof UsageSearch) => (value: string) => onChange({ [name]: value || undefined });
  const keyOptions = optionsOf("All keys", [], filters.key).filter(
    ({ value }) => !keys.some((key) => key.value === value),
  );
  return (
    <search className="grid grid-cols-2 items-end gap-3 sm:grid-cols-3 lg:grid-cols-4">
      <Select
        label="Period"
        value={range}
        options={ranges}
        onChange={(value) =>
          onChange({ range: value, ...(value === "custom" && { from: from.slice(0, 10), to: to.slice(0, 10) }) })
        }
      />
      {range === "custom" && <DayRange from={from} to={to} onChange={(name, day) => set(name)(day)} />}
      <Select label="Interval" value={interval} options={intervals} onChange={set("interval")} />
      <Select label="Group by" value={by} options={groups(interval)} onChange={set("by")} />
      <Select
        label="Model"
        value={filters.model ?? ""}
        options={optionsOf("All models", valuesOf("model"), filters.model)}
        onChange={set("model")}
      />
      {keys.length > 0 && (
        <Select label="Key" value={filters.key ?? ""} options={[...keyOptions, ...keys]} onChange={set("key")} />
      )}
      <Select
        label="Endpoint"
        value={filters.endpoint ?? ""}
        options={optionsOf("All endpoints", valuesOf("endpoint"), filters.endpoint)}
        onChange={set("endpoint")}
      />
      <TextFilter label="Tag" value={filters.tag} onChange={set("tag")} />
      <TextFilter label="Session" value={filters.session_id} onChange={set("session_id")} />
      <TextFilter label="User" value={filters.user} onChange={set("user")} />
      <Button look="quiet" className="justify-self-start" disabled={isClear} onClick={onClear}>
        Clear
      </Button>
    </search>
  );
}
