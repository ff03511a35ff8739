import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Attachment } from "../../api/chat.ts";
import type { Model } from "../../api/models.ts";
import { type Upload, uploadQuery } from "../../api/uploads.ts";
import { kindOf } from "../../lib/format.ts";
import { Preview } from "../files/preview.tsx";
import { useUploading } from "../files/use-uploading.ts";

const pdf = "application/pdf";
/** A request's body may have 25 MB, and base64 is a third longer. */
const mostPdfBytes = 15_000_000;

const kinds = [
  { modality: "image", accept: "image/*", words: "images" },
  { modality: "audio", accept: "audio/*", words: "recordings" },
  { modality: "file", accept: pdf, words: "PDFs" },
] as const;

/** What may be attached to a message for a model; undefined if it reads text alone. */
function attachable({ input_modalities: read }: Model) {
  const taken = kinds.filter(({ modality }) => read.includes(modality));
  if (taken.length === 0) return undefined;
  const takes = ({ type }: File) =>
    taken.some(({ accept }) => accept === type || (accept.endsWith("*") && type.startsWith(accept.slice(0, -1))));
  return { takes, accept: taken.map(({ accept }) => accept).join(), words: taken.map(({ words }) => words).join(", ") };
}

const ofUpload = ({ id, kind, mime }: Upload): Attachment =>
  kind === "audio"
    ? { type: "input_audio", input_audio: { data: id, format: mime.replace(/^audio\/(x-)?/, "") } }
    : { type: "image_url", image_url: { url: id } };

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** Images and recordings become uploads, documents data URLs. */
export function useAttaching(model: Model, attach: (attachment: Attachment) => void) {
  const uploading = useUploading((upload) => attach(ofUpload(upload)));
  const [error, setError] = useState<unknown>();
  const taken = attachable(model);

  async function add(files: readonly File[]) {
    setError(undefined);
    for (const file of files) {
      if (!taken?.takes(file)) throw new Error(`${file.name}: ${model.id} takes ${taken?.words ?? "no files"}.`);
      if (file.type !== pdf) uploading.start([file]);
      else if (file.size > mostPdfBytes) throw new Error(`${file.name}: a PDF may have at most 15 MB here.`);
      else attach({ type: "file", file: { filename: file.name, file_data: await dataUrl(file) } });
    }
  }
  return {
    items: uploading.items,
    error,
    accept: taken?.accept,
    add: (files: readonly File[]) => void add(files).catch(setError),
  };
}

export function UploadPreview({ id }: { readonly id: string }) {
  const { data } = useQuery(uploadQuery(id));
  if (!data) return <span className="text-xs text-muted">{id}</span>;
  return (
    <div className="w-40">
      <Preview url={data.url} mime={data.mime} name={`${kindOf(data.mime).toLowerCase()} ${id}`} />
    </div>
  );
}

/** One attachment of a message: a preview of an upload, or a document's name. */
export function Attached({ attachment }: { readonly attachment: Attachment }) {
  switch (attachment.type) {
    case "image_url":
      return <UploadPreview id={attachment.image_url.url} />;
    case "input_audio":
      return <UploadPreview id={attachment.input_audio.data} />;
    case "file":
      return <span className="text-xs wrap-anywhere text-muted">{attachment.file.filename}</span>;
  }
}
