import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "../components/button.tsx";

type Filters<Name extends string> = { readonly [name in Name]?: string | undefined };

/** Filters as the user types them. The address has them once they are applied. */
export function useFilters<Name extends string>(applied: Filters<Name>) {
  const [given, set] = useState(applied);
  const change = (name: Name, value: string) => set({ ...given, [name]: value });
  const field = (name: Name) => ({
    value: given[name] ?? "",
    onChange: ({ target: { value } }: { target: { value: string } }) => change(name, value),
  });
  return { given, change, field };
}

interface Props {
  readonly label: string;
  readonly className: string;
  readonly onApply: () => void;
  /** False if no filter is applied. */
  readonly onClear: (() => void) | false;
  readonly children: ReactNode;
}

export function FilterForm({ label, className, onApply, onClear, children }: Props) {
  function submit(event: FormEvent) {
    event.preventDefault();
    onApply();
  }
  return (
    <form aria-label={label} onSubmit={submit} className={`grid grid-cols-2 items-end gap-3 ${className}`}>
      {children}
      <div className="flex gap-3">
        <Button type="submit">Filter</Button>
        {onClear && (
          <Button look="quiet" onClick={onClear}>
            Clear
          </Button>
        )}
      </div>
    </form>
  );
}
