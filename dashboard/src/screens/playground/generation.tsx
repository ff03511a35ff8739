import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { generate } from "../../api/generate.ts";
import { submitJob } from "../../api/jobs.ts";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { inputFields, toInput } from "../../lib/input-schema.ts";
import { PriceTable } from "../models/price-table.tsx";
import { CopyAs } from "./copy-as.tsx";
import { GenerationResult, type Made } from "./generation-result.tsx";
import { InputField } from "./input-field.tsx";
import { Waiting } from "./waiting.tsx";

/** Image calls have their parameters in the body itself, all other media calls under `input`. */
const bodyOf = ({ id, endpoint }: Model, input: object) =>
  endpoint === "/v1/images/generations" ? { model: id, ...input, response_format: "url" } : { model: id, input };

/** One image or media call, with a form made from the model's schema. */
export function Generation({ model }: { readonly model: Model }) {
  const queries = useQueryClient();
  const { x_input_schema: schema } = model;
  const fields = inputFields(schema);
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const running = useRef<AbortController>(undefined);
  const call = useMutation({
    mutationFn: async (body: object): Promise<Made> => {
      const startedMs = performance.now();
      const abort = new AbortController();
      running.current = abort;
      const made = await generate(model.endpoint, body, abort.signal);
      return { made, totalMs: performance.now() - startedMs };
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["files"] }),
  });
  const navigate = useNavigate();
  const background = useMutation({
    mutationFn: (body: object) => submitJob(model.endpoint, body),
    onSuccess: ({ id }) => navigate({ to: "/jobs/$id", params: { id } }),
  });
  useEffect(() => () => running.current?.abort(), []);

  function submit(event: FormEvent) {
    event.preventDefault();
    const { submitter } = event.nativeEvent as SubmitEvent;
    const start = submitter?.getAttribute("name") === "background" ? background : call;
    start.mutate(bodyOf(model, toInput(fields, schema, values)));
  }
  const isStopped = call.error instanceof DOMException;
  return (
    <div className="grid items-start gap-6 lg:grid-cols-2">
      <Card>
        <form onSubmit={submit} className="flex flex-col gap-4">
          {fields.map((field) => (
            <InputField
              key={field.name}
              field={field}
              value={
                values[field.name] ?? (field.isRequired && field.kind === "choice" ? (field.options[0] ?? "") : "")
              }
              onChange={(value) => setValues({ ...values, [field.name]: value })}
            />
          ))}
          <PriceTable model={model} first={4} />
          <div className="flex flex-wrap justify-between gap-2">
            <CopyAs path={model.endpoint} body={() => bodyOf(model, toInput(fields, schema, values))} />
            {call.isPending ? (
              <Button onClick={() => running.current?.abort()}>Stop</Button>
            ) : (
              <span className="flex flex-wrap gap-2">
                {/* The first is pressed by Enter in a field. */}
                <Button type="submit" look="primary">
                  Generate
                </Button>
                <Button type="submit" name="background" busy={background.isPending}>
                  In the background
                </Button>
              </span>
            )}
          </div>
        </form>
      </Card>
      <Card>
        {background.error && <ErrorNote error={background.error} />}
        {call.isPending && <Waiting model={model.id} sinceMs={call.submittedAt} />}
        {call.error && !isStopped && <ErrorNote error={call.error} />}
        {isStopped && <output>Stopped. What the provider had done by then is charged.</output>}
        {call.data && <GenerationResult made={call.data} />}
        {call.isIdle && (
          <EmptyState title="Nothing made yet">
            <p>The result shows here, with what it cost. Files live 24 hours.</p>
          </EmptyState>
        )}
      </Card>
    </div>
  );
}
