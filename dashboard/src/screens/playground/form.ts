import type { Model } from "../../api/models.ts";
import { useAccountSession } from "../../api/session.ts";
import { kept } from "../../lib/kept.ts";

type Values = Readonly<Record<string, string>>;

interface State {
  readonly values: Values;
  /** The job that the form started last. */
  readonly job?: string;
}

const empty: State = { values: {} };

/** A new value, or how it follows from the present one, which may be newer than the page that the user saw. */
export type Change = (value: string | ((present: string) => string)) => void;

/** What was typed for a model, and the job that runs. */
export function useForm({ id: model }: Model) {
  const { account } = useAccountSession();
  const { get, set, use } = kept(`form/${account.id}/${model}`, empty);
  return {
    ...use(),
    change:
      (name: string): Change =>
      (value) => {
        const { values, ...rest } = get();
        const next = typeof value === "string" ? value : value(values[name] ?? "");
        set({ ...rest, values: { ...values, [name]: next } });
      },
    follow: (job: string) => set({ ...get(), job }),
  };
}
