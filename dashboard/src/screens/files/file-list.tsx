import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Paged } from "../../components/paged.tsx";
import { Section } from "../../components/section.tsx";
import { Skeleton } from "../../components/skeleton.tsx";

interface Props<File> {
  readonly title: string;
  readonly query: UseInfiniteQueryResult<InfiniteData<{ readonly data: readonly File[] }>>;
  readonly empty: ReactNode;
  readonly children: (file: File) => ReactNode;
}

/** Cards of files, one page at a time. */
export const FileList = <File extends { readonly id: string }>({ title, query, empty, children }: Props<File>) => (
  <Section title={title}>
    <Paged query={query} skeleton={<Skeleton rows={1} className="h-44" />} empty={empty}>
      {(files) => (
        <ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
          {files.map((file) => (
            <li key={file.id} className="min-w-0">
              {children(file)}
            </li>
          ))}
        </ul>
      )}
    </Paged>
  </Section>
);
