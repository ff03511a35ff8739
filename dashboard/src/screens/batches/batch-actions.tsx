import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  type Batch,
  batchesChanged,
  canBeCancelled,
  cancelBatch,
  isOpen,
  type ResultFile,
  resultFiles,
} from "../../api/batches.ts";
import { canBeRetried, type RetryProgress, retryFailed } from "../../api/retry-batch.ts";
import { Button, buttonClass } from "../../components/button.tsx";
import { ConfirmDialog, FormDialog } from "../../components/dialog.tsx";
import { ProgressBar } from "../../components/progress-bar.tsx";
import { toast } from "../../components/toast.tsx";
import { count } from "../../lib/format.ts";
import { useSubmit } from "./use-submit.ts";

/** The files of a batch, and what can be done with it. */
export function BatchActions({ batch }: { readonly batch: Batch }) {
  const [asked, ask] = useState<"cancel" | "retry">();
  const close = () => ask(undefined);
  return (
    <div className="flex flex-wrap gap-3 empty:hidden">
      {resultFiles(batch).map((file) => (
        <Download key={file.url} file={file} />
      ))}
      {canBeRetried(batch) && !isOpen(batch) && <Button onClick={() => ask("retry")}>Retry what failed</Button>}
      {canBeCancelled(batch) && <Button onClick={() => ask("cancel")}>Cancel the batch</Button>}
      {asked === "retry" && <RetryDialog batch={batch} onClose={close} />}
      {asked === "cancel" && canBeCancelled(batch) && <CancelDialog batch={batch} onClose={close} />}
    </div>
  );
}

const Download = ({ file: { label, url, name } }: { readonly file: ResultFile }) => (
  <a href={url} download={name ?? true} className={buttonClass()}>
    {label}
  </a>
);

interface DialogProps {
  readonly batch: Batch;
  readonly onClose: () => void;
}

function RetryDialog({ batch, onClose }: DialogProps) {
  const { start, isPending, error, progress } = useSubmit<RetryProgress>((signal, onProgress) =>
    retryFailed(batch, { signal, onProgress }),
  );
  const { failed } = batch.request_counts;
  return (
    <FormDialog
      title={`Retry ${count(failed)} ${failed === 1 ? "line" : "lines"}?`}
      action="Create the batch"
      busy={isPending}
      error={error}
      onSubmit={start}
      onClose={onClose}
    >
      <p className="text-muted">
        The lines that failed or did not run become a new batch with the same endpoint
        {batch.kind === "openai" && " and metadata"}. A line that the service refused is refused again unless its model
        or your balance has changed.
      </p>
      {isPending && progress && <Progress {...progress} />}
    </FormDialog>
  );
}

/** Closing the dialog stops it. */
const Progress = ({ step, done }: RetryProgress) => (
  <div className="flex flex-col gap-1.5">
    <p aria-live="polite">{step}</p>
    <ProgressBar label={step} value={done} />
  </div>
);

function CancelDialog({ batch, onClose }: DialogProps) {
  const queries = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => cancelBatch(batch),
    onSuccess: async () => {
      await batchesChanged(queries);
      toast("The batch is cancelled");
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title="Cancel this batch?"
      action="Cancel it"
      busy={cancel.isPending}
      error={cancel.error}
      onConfirm={() => cancel.mutate()}
      onClose={onClose}
    >
      <p>Lines that run are finished and charged, the others do not run. What has finished stays in the files.</p>
    </ConfirmDialog>
  );
}
