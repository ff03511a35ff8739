import { useState } from "react";
import { Field } from "./field.tsx";

interface Props {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string) => void;
}

/** A filter by text that is compared as a whole. It applies on Enter, and when it loses the focus. */
export function TextFilter({ label, value = "", onChange }: Props) {
  const [typed, setTyped] = useState({ value, text: value });
  // Another value of the address replaces what was typed.
  const text = typed.value === value ? typed.text : value;
  const apply = () => text.trim() === value || onChange(text.trim());
  return (
    <Field
      label={label}
      maxLength={256}
      value={text}
      onChange={({ target }) => setTyped({ value, text: target.value })}
      onBlur={apply}
      onKeyDown={({ key }) => key === "Enter" && apply()}
    />
  );
}
