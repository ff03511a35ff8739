import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteUpload, type Upload, uploadsQuery } from "../../api/uploads.ts";
import { Button } from "../../components/button.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { toast } from "../../components/toast.tsx";
import { DropZone } from "./drop-zone.tsx";
import { FileCard } from "./file-card.tsx";
import { GeneratedFiles } from "./generated-files.tsx";
import { UploadingList } from "./uploading-list.tsx";
import { useUploading } from "./use-uploading.ts";

export function Files() {
  const uploading = useUploading(({ id }) => toast(`Uploaded: ${id}`));
  return (
    <Page title="Files" intro="Inputs of models, named by their id in a request, and what models made.">
      <DropZone onFiles={uploading.start} />
      <UploadingList items={uploading.items} />
      <Uploads />
      <GeneratedFiles />
    </Page>
  );
}

function Uploads() {
  const query = useInfiniteQuery(uploadsQuery);
  const [removed, setRemoved] = useState<Upload>();
  const uploads = query.data?.pages.flatMap(({ data }) => data);
  return (
    <section className="flex flex-col gap-4">
      <h2 className="text-base font-semibold">Uploads</h2>
      {query.isPending && <Skeleton rows={1} className="h-44" />}
      {query.error && <ErrorNote error={query.error} onRetry={query.refetch} />}
      {uploads?.length === 0 && (
        <EmptyState title="No uploads">
          <p>What you upload is listed here while it lives.</p>
        </EmptyState>
      )}
      <ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
        {uploads?.map((upload) => (
          <li key={upload.id}>
            <FileCard
              id={upload.id}
              url={upload.url}
              mime={upload.mime}
              size={upload.bytes}
              expiresAt={upload.expires_at}
              status={upload.status}
            >
              <CopyButton text={upload.id} what={upload.id} label="Copy id" />
              {upload.status === "active" && (
                <Button small look="danger" onClick={() => setRemoved(upload)} aria-label={`Delete ${upload.id}`}>
                  Delete
                </Button>
              )}
            </FileCard>
          </li>
        ))}
      </ul>
      {query.hasNextPage && (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} className="self-start">
          Show more
        </Button>
      )}
      {removed && <DeleteDialog upload={removed} onClose={() => setRemoved(undefined)} />}
    </section>
  );
}

function DeleteDialog({ upload, onClose }: { readonly upload: Upload; readonly onClose: () => void }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteUpload(upload.id),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: uploadsQuery.queryKey });
      toast("Deleted");
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title="Delete the upload?"
      action="Delete"
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>Requests that name {upload.id} will fail. What its storage cost is not given back.</p>
    </ConfirmDialog>
  );
}
