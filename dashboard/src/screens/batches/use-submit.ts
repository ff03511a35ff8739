import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { batchesChanged } from "../../api/batches.ts";

/** Submits a batch and shows it. `Progress` is what `submit` reports meanwhile. Closing the dialog stops it. */
export function useSubmit<Progress>(
  submit: (signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<{ id: string }>,
) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [progress, setProgress] = useState<Progress>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => {
      running.current = new AbortController();
      setProgress(undefined);
      return submit(running.current.signal, setProgress);
    },
    onSuccess: async ({ id }) => {
      await navigate({ to: "/batches/$id", params: { id } });
      await batchesChanged(queries);
    },
  });
  return { start: () => mutate(), isPending, error, progress };
}
