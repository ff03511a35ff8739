import type { Generated } from "../../api/generate.ts";
import { Code } from "../../components/code.tsx";
import { GeneratedFileList } from "../files/generated-file-list.tsx";
import { OutcomeLine } from "./outcome.tsx";

export interface Made {
  readonly made: Generated;
  readonly totalMs: number;
}

export function GenerationResult({ made: { made, totalMs } }: { readonly made: Made }) {
  const { files, output, requestId, costUsd } = made;
  return (
    <div className="flex flex-col gap-4">
      <OutcomeLine outcome={{ requestId, costUsd, totalMs }} />
      <GeneratedFileList files={files} />
      {output !== undefined && output !== null && (
        <Code text={typeof output === "string" ? output : JSON.stringify(output, null, 2)} what="Output" />
      )}
    </div>
  );
}
