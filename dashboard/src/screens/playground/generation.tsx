import { useMutation } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { submitJob } from "../../api/jobs.ts";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { type InputField as Field, inputFields, toInput } from "../../lib/input-schema.ts";
import { PriceTable } from "../models/price-table.tsx";
import { CopyAs } from "./copy-as.tsx";
import { useForm } from "./form.ts";
import { InputField } from "./input-field.tsx";
import { JobRun } from "./job-run.tsx";

/** Image calls have their parameters in the body itself, all other media calls under `input`. */
const bodyOf = ({ id, endpoint }: Model, input: object) =>
  endpoint === "/v1/images/generations" ? { model: id, ...input, response_format: "url" } : { model: id, input };

const actions: Readonly<Record<string, string>> = {
  image: "Generate image",
  video: "Generate video",
  audio: "Generate audio",
  text: "Transcribe",
};

/** A required choice is sent even if nothing was chosen. */
const initialOf = (field: Field) => (field.kind === "choice" && field.isRequired ? (field.options[0] ?? "") : "");

/** One image or media call, with a form made from the model's schema. It runs as a job, so it needs no open page. */
export function Generation({ model }: { readonly model: Model }) {
  const { x_input_schema: schema, endpoint, output_modalities: makes } = model;
  const fields = inputFields(schema);
  const { values, job, change, follow } = useForm(model);
  const valueOf = (field: Field) => values[field.name] ?? initialOf(field);
  const body = () =>
    bodyOf(model, toInput(fields, schema, Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]))));
  const start = useMutation({
    mutationFn: () => submitJob(endpoint, body()),
    onSuccess: ({ id }) => follow(id),
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    start.mutate();
  }
  return (
    <div className="grid items-start gap-6 lg:grid-cols-2">
      <Card>
        <form onSubmit={submit} className="flex flex-col gap-4">
          {fields.map((field) => (
            <InputField key={field.name} field={field} value={valueOf(field)} onChange={change(field.name)} />
          ))}
          <PriceTable model={model} first={4} />
          <div className="flex flex-wrap justify-between gap-2">
            <CopyAs path={endpoint} body={body} />
            <Button type="submit" look="primary" busy={start.isPending}>
              {actions[makes[0] ?? ""] ?? "Generate"}
            </Button>
          </div>
        </form>
      </Card>
      <Card className="flex flex-col gap-4">
        {start.error && <ErrorNote error={start.error} />}
        {job !== undefined && <JobRun key={job} id={job} />}
        {job === undefined && !start.error && (
          <EmptyState title="Nothing made yet">
            <p>The result shows here, with what it cost. It goes on if you leave this page. Files live 24 hours.</p>
          </EmptyState>
        )}
      </Card>
    </div>
  );
}
