import { jobStatuses, type Filters as Values } from "../../api/jobs.ts";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/select.tsx";
import { statusOptions } from "../../lib/statuses.ts";

interface Props {
  readonly values: Values;
  readonly onChange: (values: Values) => void;
}

/** The endpoints whose calls take long enough to become jobs come first. */
const endpoints = [
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/media/generations",
  "/v1/audio/speech",
  "/v1/audio/transcriptions",
  "/v1/audio/translations",
  "/v1/chat/completions",
  "/v1/messages",
  "/v1/responses",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/rerank",
];

export function Filters({ values, onChange }: Props) {
  const { status = "", endpoint = "" } = values;
  const listed = endpoint && !endpoints.includes(endpoint) ? [endpoint, ...endpoints] : endpoints;
  return (
    <search className="grid grid-cols-2 items-end gap-3 lg:grid-cols-[12rem_20rem_auto]">
      <Select
        label="Status"
        value={status}
        options={statusOptions(jobStatuses)}
        onChange={(value) => onChange({ ...values, status: value || undefined })}
      />
      <Select
        label="Endpoint"
        value={endpoint}
        options={[{ value: "", label: "All" }, ...listed.map((value) => ({ value, label: value }))]}
        onChange={(value) => onChange({ ...values, endpoint: value || undefined })}
      />
      <Button look="quiet" className="justify-self-start" disabled={!status && !endpoint} onClick={() => onChange({})}>
        Clear
      </Button>
    </search>
  );
}
