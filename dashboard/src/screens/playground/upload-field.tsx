import { useInfiniteQuery } from "@tanstack/react-query";
import { uploadsQuery } from "../../api/uploads.ts";
import { buttonClass } from "../../components/button.tsx";
import { classNames } from "../../components/class-names.ts";
import { Select } from "../../components/select.tsx";
import { UploadingList } from "../files/uploading-list.tsx";
import { useUploading } from "../files/use-uploading.ts";

interface Props {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly onChange: (id: string) => void;
}

/** One of the account's uploads, or a new one. */
export function UploadField({ label, hint, value, onChange }: Props) {
  const { data } = useInfiniteQuery(uploadsQuery);
  const uploading = useUploading(({ id }) => onChange(id));
  const active = data?.pages.flatMap((page) => page.data).filter(({ status }) => status === "active") ?? [];
  const options = active.map(({ id, mime }) => ({ value: id, label: `${id} (${mime})` }));
  return (
    <div className="flex flex-col gap-2">
      <div className="flex items-end gap-2">
        <Select
          label={label}
          className="min-w-0 flex-1"
          value={value}
          options={[{ value: "", label: "None" }, ...options]}
          onChange={onChange}
        />
        <label className={classNames(buttonClass(), "focus-within:outline-2 focus-within:outline-accent")}>
          Upload<span className="sr-only"> a file for {label}</span>
          <input
            type="file"
            accept="image/*,video/*,audio/*"
            className="sr-only"
            onChange={({ target }) => uploading.start([...(target.files ?? [])])}
          />
        </label>
      </div>
      {hint && <p className="text-xs text-muted">{hint}</p>}
      <UploadingList items={uploading.items} />
    </div>
  );
}
