import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAccountSession } from "../../api/session.ts";
import { deleteUpload, type Upload, uploadsQuery } from "../../api/uploads.ts";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { DropZone } from "../../components/drop-zone.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { toast } from "../../components/toast.tsx";
import { curlForUpload } from "../../lib/examples.ts";
import { kindOf } from "../../lib/format.ts";
import { FileCard } from "./file-card.tsx";
import { FileList } from "./file-list.tsx";
import { GeneratedFiles } from "./generated-files.tsx";
import { UploadingList } from "./uploading-list.tsx";
import { useUploading } from "./use-uploading.ts";

export function Files() {
  const uploading = useUploading(({ id }) => toast(`Uploaded: ${id}`));
  return (
    <Page title="Files" intro="Inputs of models, named by their id in a request, and what models made.">
      <DropZone
        what="files"
        note="Images, video and audio, up to 200 MB each. They are deleted after 24 hours."
        accept="image/*,video/*,audio/*"
        multiple
        onFiles={uploading.start}
      />
      <UploadingList items={uploading.items} />
      <Uploads />
      <GeneratedFiles />
    </Page>
  );
}

function Uploads() {
  const { service } = useAccountSession();
  const [removed, setRemoved] = useState<Upload>();
  return (
    <>
      <FileList
        title="Uploads"
        query={useInfiniteQuery(uploadsQuery)}
        empty={
          <EmptyState title="No uploads">
            <p>What you upload is listed here while it lives. From a program:</p>
            <Code text={curlForUpload(service.public_url)} what="curl" />
          </EmptyState>
        }
      >
        {(upload) => (
          <FileCard
            title={kindOf(upload.mime)}
            createdAt={upload.created_at}
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
        )}
      </FileList>
      {removed && <DeleteDialog upload={removed} onClose={() => setRemoved(undefined)} />}
    </>
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
