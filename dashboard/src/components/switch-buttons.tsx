import { classNames } from "./class-names.ts";

interface Props<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly onChange: (value: Value) => void;
}

/** One of a few choices, as buttons side by side. */
export function SwitchButtons<Value extends string>({ label, value, options, onChange }: Props<Value>) {
  return (
    <fieldset className="inline-flex rounded-lg border border-line bg-raised p-0.5">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
          className={classNames(
            "min-h-8 rounded-md px-2 text-xs font-medium sm:px-3",
            option.value === value ? "bg-surface text-ink shadow-sm" : "text-muted hover:text-ink",
          )}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
