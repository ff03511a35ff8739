import { Field, TextArea } from "../../components/field.tsx";
import { Select } from "../../components/select.tsx";
import { optionWords, wordsOf } from "../../lib/field-words.ts";
import type { InputField as Description } from "../../lib/input-schema.ts";
import { Choices } from "./choices.tsx";
import type { Change } from "./form.ts";
import { UploadField } from "./upload-field.tsx";

interface Props {
  readonly field: Description;
  readonly value: string;
  readonly onChange: Change;
}

/** One parameter of a model. */
export function InputField({ field, value, onChange }: Props) {
  const { name, isRequired, initial } = field;
  const byDefault = typeof initial === "string" || initial === undefined ? initial : JSON.stringify(initial);
  const placeholder = byDefault ?? "Default";
  const common = wordsOf(field);
  const typed = {
    ...common,
    value,
    required: isRequired,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  switch (field.kind) {
    case "choice": {
      const options = field.options.map((option) => ({ value: option, label: optionWords(name, option) }));
      const none = {
        value: "",
        label: byDefault === undefined ? "Default" : `Default: ${optionWords(name, byDefault)}`,
      };
      return (
        <Select {...common} value={value} options={isRequired ? options : [none, ...options]} onChange={onChange} />
      );
    }
    case "choices":
      return <Choices {...common} value={value} options={field.options} onChange={onChange} />;
    case "switch":
      return (
        <Select
          {...common}
          value={value}
          options={[
            {
              value: "",
              label: byDefault === undefined ? "Default" : `Default: ${byDefault === "true" ? "Yes" : "No"}`,
            },
            { value: "true", label: "Yes" },
            { value: "false", label: "No" },
          ]}
          onChange={onChange}
        />
      );
    case "number":
      return (
        <Field
          {...typed}
          type="number"
          placeholder={placeholder}
          step={field.isWhole ? 1 : "any"}
          {...(field.min !== undefined && { min: field.min })}
          {...(field.max !== undefined && { max: field.max })}
        />
      );
    case "upload":
      return <UploadField {...{ ...common, name, isRequired, value, onChange }} most={field.most} />;
    case "lines":
      return <TextArea {...typed} rows={3} />;
    case "json":
      return <TextArea {...typed} rows={2} placeholder="JSON" />;
    case "text":
      return field.isLong ? (
        <TextArea {...typed} rows={4} {...(field.maxLength !== undefined && { maxLength: field.maxLength })} />
      ) : (
        <Field {...typed} placeholder={isRequired ? "" : placeholder} />
      );
  }
}
