import type { Model } from "../../api/models.ts";
import { Field, TextArea } from "../../components/field.tsx";
import { Table } from "../../components/table.tsx";
import { linesOf } from "../../lib/input-schema.ts";
import { useForm } from "./form.ts";
import { TextCall } from "./text-call.tsx";

interface Answer {
  readonly results: readonly { readonly index: number; readonly relevance_score: number }[];
}

export function Rerank({ model }: { readonly model: Model }) {
  const { values, change } = useForm(model);
  const { query = "", documents = "" } = values;
  const fields = (
    <>
      <Field label="Query" required value={query} onChange={({ target }) => change("query")(target.value)} />
      <TextArea
        label="Documents"
        hint="One a line."
        rows={6}
        required
        value={documents}
        onChange={({ target }) => change("documents")(target.value)}
      />
    </>
  );
  const body = { model: model.id, query, documents: linesOf(documents) };
  return (
    <TextCall path={model.endpoint} body={body} action="Rank" fields={fields}>
      {({ results }: Answer, sent) => (
        <Table
          caption="Documents by relevance"
          rows={results}
          rowKey={({ index }) => String(index)}
          columns={[
            { header: "Relevance", numeric: true, cell: ({ relevance_score }) => relevance_score.toFixed(4) },
            { header: "Document", cell: ({ index }) => <span className="wrap-anywhere">{sent.documents[index]}</span> },
          ]}
        />
      )}
    </TextCall>
  );
}
