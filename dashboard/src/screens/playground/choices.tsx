import { linesOf } from "../../lib/input-schema.ts";

interface Props {
  readonly label: string;
  readonly hint?: string;
  /** The chosen ones, one a line. */
  readonly value: string;
  readonly options: readonly string[];
  readonly onChange: (value: string) => void;
}

/** Any number of a few choices. */
export function Choices({ label, hint, value, options, onChange }: Props) {
  const chosen = linesOf(value);
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="text-xs font-medium text-muted">{label}</legend>
      <div className="flex flex-wrap gap-x-4 gap-y-1">
        {options.map((option) => (
          <label key={option} className="flex min-h-8 items-center gap-2">
            <input
              type="checkbox"
              checked={chosen.includes(option)}
              onChange={({ target }) =>
                onChange(
                  options.filter((each) => (each === option ? target.checked : chosen.includes(each))).join("\n"),
                )
              }
            />
            {option}
          </label>
        ))}
      </div>
      {hint && <p className="text-xs text-muted">{hint}</p>}
    </fieldset>
  );
}
