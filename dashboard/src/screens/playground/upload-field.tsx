import { useInfiniteQuery } from "@tanstack/react-query";
import { type Upload, uploadsQuery } from "../../api/uploads.ts";
import { Button } from "../../components/button.tsx";
import { FileButton } from "../../components/file-button.tsx";
import { Select } from "../../components/select.tsx";
import { bytes, kindOf } from "../../lib/format.ts";
import { linesOf } from "../../lib/input-schema.ts";
import { relativeTime, useNow } from "../../lib/time.ts";
import { UploadingList } from "../files/uploading-list.tsx";
import { useUploading } from "../files/use-uploading.ts";
import { UploadPreview } from "./attachments.tsx";
import type { Change } from "./form.ts";

interface Props {
  readonly label: string;
  readonly hint?: string;
  /** The parameter's. */
  readonly name: string;
  /** The number of files that it takes. */
  readonly most: number;
  readonly isRequired: boolean;
  /** Ids, one a line. */
  readonly value: string;
  readonly onChange: Change;
}

const isImage = (name: string) => /image|mask/.test(name);

/** Some of the account's uploads, or new ones. */
export function UploadField({ label, hint, name, most, isRequired, value, onChange }: Props) {
  const now = useNow();
  const { data } = useInfiniteQuery(uploadsQuery);
  const add = (id: string) =>
    onChange((present) => [...(most > 1 ? linesOf(present) : []), id].slice(-most).join("\n"));
  const remove = (id: string) =>
    onChange((present) =>
      linesOf(present)
        .filter((each) => each !== id)
        .join("\n"),
    );
  const uploading = useUploading(({ id }) => add(id));
  const chosen = linesOf(value);
  const fits = ({ id, status, kind }: Upload) =>
    status === "active" && !chosen.includes(id) && (kind === "image") === isImage(name);
  const others = (data?.pages ?? []).flatMap((page) => page.data.filter(fits));
  const options = others.map(({ id, mime, bytes: size, created_at }) => ({
    value: id,
    label: `${kindOf(mime)}, ${bytes(size)}, ${relativeTime(created_at, now)}`,
  }));
  return (
    <div className="flex flex-col gap-2">
      <div className="flex items-end gap-2">
        <Select
          label={label}
          className="min-w-0 flex-1"
          value=""
          required={isRequired && chosen.length === 0}
          options={[{ value: "", label: chosen.length > 0 ? `${chosen.length} chosen` : "None" }, ...options]}
          onChange={add}
        />
        <FileButton
          label="Upload"
          what={`a file for ${label}`}
          accept={isImage(name) ? "image/*" : "audio/*,video/*"}
          multiple={most > 1}
          onFiles={uploading.start}
        />
      </div>
      {hint && <p className="text-xs text-muted">{hint}</p>}
      <ul className="flex flex-wrap gap-3 empty:hidden">
        {chosen.map((id) => (
          <li key={id} className="flex flex-col items-start gap-1.5">
            <UploadPreview id={id} />
            <Button small aria-label={`Remove ${id}`} onClick={() => remove(id)}>
              Remove
            </Button>
          </li>
        ))}
      </ul>
      <UploadingList items={uploading.items} />
    </div>
  );
}
