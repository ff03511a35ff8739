import type { Model } from "../../api/models.ts";
import { Badge } from "../../components/badge.tsx";
import { TextArea } from "../../components/field.tsx";
import { Table } from "../../components/table.tsx";
import { useForm } from "./form.ts";
import { TextCall } from "./text-call.tsx";

interface Answer {
  readonly results: readonly {
    readonly flagged: boolean;
    readonly categories: Readonly<Record<string, boolean | null>>;
    readonly category_scores: Readonly<Record<string, number | null>>;
  }[];
}

export function Moderation({ model }: { readonly model: Model }) {
  const { values, change } = useForm(model);
  const { input = "" } = values;
  const field = (
    <TextArea label="Text" rows={4} required value={input} onChange={({ target }) => change("input")(target.value)} />
  );
  return (
    <TextCall path={model.endpoint} body={{ model: model.id, input }} action="Check" fields={field}>
      {({ results: [result] }: Answer) => result && <Result {...result} />}
    </TextCall>
  );
}

function Result({ flagged, categories, category_scores }: Answer["results"][number]) {
  const rows = Object.entries(category_scores)
    .map(([name, score]) => ({ name, score: score ?? 0, isFlagged: categories[name] ?? false }))
    .toSorted((one, other) => other.score - one.score);
  return (
    <>
      <div>
        <Badge tone={flagged ? "bad" : "good"}>{flagged ? "Flagged" : "Not flagged"}</Badge>
      </div>
      <Table
        caption="Categories"
        rows={rows}
        rowKey={({ name }) => name}
        columns={[
          { header: "Category", cell: ({ name, isFlagged }) => (isFlagged ? <strong>{name}</strong> : name) },
          { header: "Score", numeric: true, cell: ({ score }) => score.toFixed(4) },
        ]}
      />
    </>
  );
}
