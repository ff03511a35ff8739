import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ProgressBar } from "../../components/progress-bar.tsx";
import { bytes } from "../../lib/format.ts";
import type { Uploading } from "./use-uploading.ts";

export function UploadingList({ items }: { readonly items: readonly Uploading[] }) {
  if (items.length === 0) return null;
  return (
    <ul aria-label="Uploads under way" className="flex flex-col gap-3">
      {items.map((item) => (
        <li key={item.id} className="flex flex-col gap-2 rounded-xl border border-line bg-surface p-4">
          <div className="flex items-center justify-between gap-3">
            <span className="min-w-0 truncate font-medium">{item.name}</span>
            <Button small onClick={item.stop} aria-label={`${item.error ? "Dismiss" : "Stop"} ${item.name}`}>
              {item.error ? "Dismiss" : "Stop"}
            </Button>
          </div>
          {item.error ? (
            <ErrorNote error={item.error} />
          ) : (
            <>
              <ProgressBar label={`Upload of ${item.name}`} value={item.bytes > 0 ? item.sentBytes / item.bytes : 0} />
              <span className="text-xs text-muted tabular-nums">
                {item.sentBytes >= item.bytes
                  ? "Checking the file…"
                  : `${bytes(item.sentBytes)} of ${bytes(item.bytes)}`}
              </span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
