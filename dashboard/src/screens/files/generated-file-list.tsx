import type { GeneratedFile } from "../../api/result-files.ts";
import { buttonClass } from "../../components/button.tsx";
import { remaining, useNow } from "../../lib/time.ts";
import { Preview } from "./preview.tsx";

const nameOf = (url: string) => new URL(url, window.location.href).pathname.split("/").at(-1) ?? "file";

/** The files of one answer, each with a preview. */
export function GeneratedFileList({ files }: { readonly files: readonly GeneratedFile[] }) {
  const now = useNow();
  return (
    <ul className="grid grid-cols-[repeat(auto-fill,minmax(min(16rem,100%),1fr))] gap-4">
      {files.map(({ url, contentType, expiresAt }) => (
        <li key={url} className="flex flex-col gap-2">
          <Preview url={url} mime={contentType} name={nameOf(url)} />
          <div className="flex flex-wrap items-center justify-between gap-2">
            <a href={url} download className={buttonClass("secondary", true)}>
              Download
            </a>
            {expiresAt && <span className="text-xs text-muted">Deleted in {remaining(expiresAt, now)}</span>}
          </div>
        </li>
      ))}
    </ul>
  );
}
