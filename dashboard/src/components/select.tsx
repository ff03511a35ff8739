import type { ComponentProps } from "react";
import { controlClass, FieldFrame } from "./field.tsx";

interface Option {
  readonly value: string;
  readonly label: string;
}

interface Props extends Omit<ComponentProps<"select">, "id" | "className" | "onChange"> {
  readonly label: string;
  readonly hint?: string;
  readonly hideLabel?: boolean;
  readonly className?: string;
  readonly options: readonly Option[];
  readonly onChange: (value: string) => void;
}

/** Options of a filter: all, the known values, and the one in the address, which may be of something that is gone. */
export function optionsOf(all: string, values: readonly string[], chosen: string | undefined): readonly Option[] {
  const known = new Set([...(chosen ? [chosen] : []), ...values]);
  return [{ value: "", label: all }, ...[...known].toSorted().map((value) => ({ value, label: value }))];
}

export function Select({ label, hint, hideLabel = false, className, options, onChange, ...select }: Props) {
  return (
    <FieldFrame label={label} hint={hint} hideLabel={hideLabel} className={className}>
      {(ids) => (
        <select {...select} {...ids} className={controlClass} onChange={(event) => onChange(event.target.value)}>
          {options.map(({ value, label: text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </FieldFrame>
  );
}
