import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { generatedFilesQuery } from "../../api/generated-files.ts";
import { buttonClass } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FileCard } from "./file-card.tsx";
import { FileList } from "./file-list.tsx";

export const GeneratedFiles = () => (
  <FileList
    title="Generated"
    query={useInfiniteQuery(generatedFilesQuery)}
    empty={
      <EmptyState title="No generated files">
        <p>Images, video and audio that models make are here for 24 hours.</p>
        <Link to="/playground" search={{ model: "local/image" }} className={buttonClass()}>
          Make an image
        </Link>
      </EmptyState>
    }
  >
    {({ id, request, type, bytes, expires_at, url }) => (
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
    )}
  </FileList>
);
