import { type ComponentProps, type ReactNode, useId } from "react";
import { classNames } from "./class-names.ts";

export const controlClass =
  "w-full min-h-10 rounded-lg border border-control bg-surface px-3 py-2 text-sm text-ink placeholder:text-muted disabled:opacity-60 aria-invalid:border-bad";

interface Labelled {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly className?: string | undefined;
  /** Hides the label from all but screen readers. */
  readonly hideLabel?: boolean;
}

interface FrameProps extends Labelled {
  readonly children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ReactNode;
}

/** A control with its label, and its hint or its error below it. */
export function FieldFrame({ label, hint, error, className, hideLabel, children }: FrameProps) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className={classNames("flex min-w-0 flex-col gap-1.5", className)}>
      <label htmlFor={id} className={hideLabel ? "sr-only" : "text-xs font-medium text-muted"}>
        {label}
      </label>
      {children({
        id,
        ...(note !== undefined && { "aria-describedby": `${id}-note` }),
        ...(error !== undefined && { "aria-invalid": true }),
      })}
      {note !== undefined && (
        <p id={`${id}-note`} className={classNames("text-xs", error === undefined ? "text-muted" : "text-bad")}>
          {note}
        </p>
      )}
    </div>
  );
}

type FieldProps = Labelled & Omit<ComponentProps<"input">, "id" | "className">;

export function Field({ label, hint, error, className, hideLabel, ...input }: FieldProps) {
  return (
    <FieldFrame {...{ label, hint, error, className }} hideLabel={hideLabel ?? false}>
      {(ids) => <input {...input} {...ids} className={controlClass} />}
    </FieldFrame>
  );
}

interface UsdProps extends Omit<FieldProps, "onChange" | "pattern" | "title" | "inputMode"> {
  readonly onChange: (amount: string) => void;
  readonly places?: number;
  readonly mayBeNegative?: boolean;
}

/** An exact amount, edited as text. */
export function UsdField({ onChange, places = 9, mayBeNegative = false, ...field }: UsdProps) {
  return (
    <Field
      {...field}
      inputMode="decimal"
      pattern={`${mayBeNegative ? "-?" : ""}[0-9]+(\\.[0-9]{1,${places}})?`}
      title={`A number such as 12.50, with at most ${places} decimals`}
      onChange={(event) => onChange(event.target.value.trim())}
    />
  );
}

type TextAreaProps = Labelled & Omit<ComponentProps<"textarea">, "id" | "className">;

export function TextArea({ label, hint, error, className, hideLabel, ...input }: TextAreaProps) {
  return (
    <FieldFrame {...{ label, hint, error, className }} hideLabel={hideLabel ?? false}>
      {(ids) => <textarea {...input} {...ids} className={classNames(controlClass, "resize-y")} />}
    </FieldFrame>
  );
}
