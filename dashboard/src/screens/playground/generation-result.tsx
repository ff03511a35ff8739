import type { Generated } from "../../api/generate.ts";
import { buttonClass } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { remaining, useNow } from "../../lib/time.ts";
import { Preview } from "../files/preview.tsx";
import { OutcomeLine } from "./outcome.tsx";

export interface Made {
  readonly made: Generated;
  readonly totalMs: number;
}

const nameOf = (url: string) => new URL(url, window.location.href).pathname.split("/").at(-1) ?? "file";

export function GenerationResult({ made: { made, totalMs } }: { readonly made: Made }) {
  const now = useNow();
  const { files, output, requestId, costUsd } = made;
  return (
    <div className="flex flex-col gap-4">
      <OutcomeLine outcome={{ requestId, costUsd, totalMs }} />
      <ul className="flex flex-col gap-4">
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
      {output !== undefined && output !== null && (
        <Code text={typeof output === "string" ? output : JSON.stringify(output, null, 2)} what="Output" />
      )}
    </div>
  );
}
