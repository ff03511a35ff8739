import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { onError } from "../../api/query-client.ts";
import { type Upload, upload, uploadsQuery } from "../../api/uploads.ts";

export interface Uploading {
  readonly id: number;
  readonly name: string;
  readonly bytes: number;
  readonly sentBytes: number;
  readonly error?: unknown;
  readonly stop: () => void;
}

const numbers = { last: 0 };

/** Files being uploaded, in the order in which they were chosen. */
export function useUploading(onDone?: (upload: Upload) => void) {
  const queries = useQueryClient();
  const [items, setItems] = useState<readonly Uploading[]>([]);

  async function start(file: File) {
    numbers.last += 1;
    const { last: id } = numbers;
    const abort = new AbortController();
    const change = (part: Partial<Uploading>) =>
      setItems((all) => all.map((item) => (item.id === id ? { ...item, ...part } : item)));
    const remove = () => setItems((all) => all.filter((item) => item.id !== id));
    const stop = () => {
      abort.abort();
      remove();
    };
    setItems((all) => [...all, { id, name: file.name, bytes: file.size, sentBytes: 0, stop }]);
    try {
      const done = await upload(file, { signal: abort.signal, onSent: (sentBytes) => change({ sentBytes }) });
      await queries.invalidateQueries({ queryKey: uploadsQuery.queryKey });
      remove();
      onDone?.(done);
    } catch (error) {
      if (!abort.signal.aborted) change({ error });
      onError(error);
    }
  }

  return { items, start: (files: Iterable<File>) => void Promise.all([...files].map(start)) };
}
