import { type ReactNode, useMemo } from "react";
import { isOpen, type Job } from "../../api/jobs.ts";
import { filesOf } from "../../api/result-files.ts";
import { Code } from "../../components/code.tsx";
import { useNow } from "../../lib/time.ts";
import { GeneratedFileList } from "../files/generated-file-list.tsx";

/** The answer of the synchronous call: its files, and its JSON. */
export function JobResult({ job }: { readonly job: Job }) {
  const now = useNow();
  const { error, result, status, status_code, expires_at, result_url } = job;
  if (isOpen(job)) return <Section title="Result">It shows here once the job has ended.</Section>;
  if (status !== "completed")
    return (
      <Section title="Why there is no result">
        {error ? `${error.message} (${status_code} ${error.code})` : "It ended before it had one."}
      </Section>
    );
  if (expires_at !== null && expires_at * 1000 <= now)
    return <Section title="Result">It is deleted: results live 24 hours.</Section>;
  if (result === null)
    return (
      <Section title="Result">
        It is larger than 256 KB, or not JSON. With a key, fetch it from <code>{result_url}</code>
      </Section>
    );
  return <Shown result={result} />;
}

function Shown({ result }: { readonly result: NonNullable<Job["result"]> }) {
  const files = useMemo(() => filesOf(result), [result]);
  const text = textOf(result["output"]);
  return (
    <section className="flex flex-col gap-4">
      <h2 className="text-base font-semibold">Result</h2>
      {files.length > 0 && <GeneratedFileList files={files} />}
      {text !== undefined && <Code what="Text" text={text} />}
      <Code what="Answer" text={JSON.stringify(result, withoutBytes, 2)} />
    </section>
  );
}

/** What a recording says. */
function textOf(output: unknown): string | undefined {
  const text = typeof output === "object" && output !== null ? (output as { text?: unknown }).text : output;
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** The images themselves are shown. */
const withoutBytes = (name: string, value: unknown): unknown =>
  name === "b64_json" && typeof value === "string" ? `${value.length} characters of base64` : value;

const Section = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <section className="flex flex-col gap-2">
    <h2 className="text-base font-semibold">{title}</h2>
    <p className="wrap-anywhere text-muted">{children}</p>
  </section>
);
