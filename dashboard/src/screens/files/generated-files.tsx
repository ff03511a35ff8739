import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { generatedFilesQuery } from "../../api/generated-files.ts";
import { Button, buttonClass } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { FileCard } from "./file-card.tsx";

export function GeneratedFiles() {
  const query = useInfiniteQuery(generatedFilesQuery);
  const files = query.data?.pages.flatMap(({ data }) => data);
  return (
    <section className="flex flex-col gap-4">
      <h2 className="text-base font-semibold">Generated</h2>
      {query.isPending && <Skeleton rows={1} className="h-44" />}
      {query.error && <ErrorNote error={query.error} onRetry={query.refetch} />}
      {files?.length === 0 && (
        <EmptyState title="No generated files">
          <p>Images, video and audio that models make are here for 24 hours.</p>
          <Link to="/playground" search={{ model: "local/image" }} className={buttonClass()}>
            Make an image
          </Link>
        </EmptyState>
      )}
      <ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
        {files?.map(({ id, request, type, bytes, expires_at, url }) => (
          <li key={id}>
            <FileCard id={id} url={url} mime={type} size={bytes} expiresAt={expires_at}>
              <a href={url} download className={buttonClass("secondary", true)} aria-label={`Download ${id}`}>
                Download
              </a>
              <Link
                to="/requests/$id"
                params={{ id: request }}
                className={buttonClass("quiet", true)}
                aria-label={`Its call, which made ${id}`}
              >
                Its call
              </Link>
            </FileCard>
          </li>
        ))}
      </ul>
      {query.hasNextPage && (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} className="self-start">
          Show more
        </Button>
      )}
    </section>
  );
}
