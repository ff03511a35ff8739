import type { Model } from "../../api/models.ts";
import { TextArea } from "../../components/field.tsx";
import { count } from "../../lib/format.ts";
import { useForm } from "./form.ts";
import { TextCall } from "./text-call.tsx";

interface Answer {
  readonly data: readonly { readonly embedding: readonly number[] }[];
}

const shownNumbers = 24;

export function Embeddings({ model }: { readonly model: Model }) {
  const { values, change } = useForm(model);
  const { input = "" } = values;
  const field = (
    <TextArea label="Text" rows={4} required value={input} onChange={({ target }) => change("input")(target.value)} />
  );
  return (
    <TextCall path={model.endpoint} body={{ model: model.id, input }} action="Embed" fields={field}>
      {({ data: [first] }: Answer) => (
        <>
          <p className="font-medium">{count(first?.embedding.length ?? 0)} numbers</p>
          <p className="font-mono text-xs wrap-anywhere text-muted">
            {first?.embedding
              .slice(0, shownNumbers)
              .map((value) => value.toFixed(4))
              .join(", ")}
            , …
          </p>
        </>
      )}
    </TextCall>
  );
}
