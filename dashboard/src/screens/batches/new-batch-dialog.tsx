import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type BatchEndpoint, batchEndpoints, submitBatch } from "../../api/batches.ts";
import { FormDialog } from "../../components/dialog.tsx";
import { ProgressBar } from "../../components/progress-bar.tsx";
import { Select } from "../../components/select.tsx";
import { bytes } from "../../lib/format.ts";
import { useSubmit } from "./use-submit.ts";

interface Props {
  readonly file: File;
  readonly onClose: () => void;
}

const headBytes = 65_536;

/** The endpoint that the file names first. The service checks every line. */
async function endpointIn(file: File): Promise<BatchEndpoint | null> {
  const head = await file.slice(0, headBytes).text();
  const places = batchEndpoints.map((endpoint) => ({ endpoint, at: head.indexOf(`"${endpoint}"`) }));
  const [first] = places.filter(({ at }) => at !== -1).toSorted((a, b) => a.at - b.at);
  return first?.endpoint ?? null;
}

export function NewBatchDialog({ file, onClose }: Props) {
  const { name, size, lastModified } = file;
  const { data: named } = useQuery({
    queryKey: ["batches", "endpoint", name, size, lastModified],
    queryFn: () => endpointIn(file),
  });
  const [chosen, choose] = useState<BatchEndpoint>();
  const endpoint = chosen ?? named ?? batchEndpoints[0] ?? "/v1/chat/completions";
  const { start, isPending, error, progress } = useSubmit<number>((signal, onSent) =>
    submitBatch({ file, endpoint }, { signal, onSent }),
  );
  return (
    <FormDialog
      title="New batch"
      action="Create the batch"
      busy={isPending}
      error={error}
      onSubmit={start}
      onClose={onClose}
    >
      <p className="wrap-anywhere">
        {name}, {bytes(size)}
      </p>
      <Select
        label="Endpoint"
        hint="All lines of the file have it as their url."
        value={endpoint}
        options={batchEndpoints.map((value) => ({ value, label: value }))}
        onChange={(value) => choose(batchEndpoints.find((each) => each === value))}
      />
      {isPending && (
        <ProgressBar label={`Upload of ${name}`} value={Math.min(1, (progress ?? 0) / Math.max(1, size))} />
      )}
    </FormDialog>
  );
}
