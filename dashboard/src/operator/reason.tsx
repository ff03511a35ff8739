import { Field } from "../components/field.tsx";

interface Props {
  readonly value: string;
  readonly onChange: (reason: string) => void;
}

/** The reason for a money movement. */
export const Reason = ({ value, onChange }: Props) => (
  <Field
    label="Reason"
    hint="Stored in the ledger and in the audit log."
    maxLength={1000}
    value={value}
    onChange={(event) => onChange(event.target.value)}
  />
);
