import { Field } from "./field.tsx";

interface Props {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly onChange: (name: "from" | "to", day: string) => void;
}

/** The first and the last UTC day of a period. */
export const DayRange = ({ from, to, onChange }: Props) => (
  <>
    <Field
      label="From (UTC)"
      type="date"
      value={from ?? ""}
      {...(to && { max: to })}
      onChange={({ target }) => onChange("from", target.value)}
    />
    <Field
      label="To (UTC)"
      type="date"
      value={to ?? ""}
      {...(from && { min: from })}
      onChange={({ target }) => onChange("to", target.value)}
    />
  </>
);
