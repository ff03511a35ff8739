import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { generatedFilesQuery } from "../../api/generated-files.ts";
import { buttonClass } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { kindOf } from "../../lib/format.ts";
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
    {({ id, request, model, type, bytes, created_at, expires_at, url }) => (
      <FileCard
        title={model ?? kindOf(type)}
        createdAt={created_at}
        id={id}
        url={url}
        mime={type}
        size={bytes}
        expiresAt={expires_at}
      >
        <a href={url} download className={buttonClass("secondary", true)} aria-label={`Download ${id}`}>
          Download
        </a>
        <Link
          to="/requests/$id"
          params={{ id: request }}
          className={buttonClass("quiet", true)}
          aria-label={`Request that made ${id}`}
        >
          Request
        </Link>
      </FileCard>
    )}
  </FileList>
);
