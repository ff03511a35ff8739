import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Call, requestsQuery, type Filters as Values } from "../../api/requests.ts";
import { Button } from "../../components/button.tsx";
import { ContentNote } from "../../components/content-note.tsx";
import { type CsvColumns, DownloadCsv } from "../../components/download-csv.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FirstCall } from "../../components/first-call.tsx";
import { Page } from "../../components/page.tsx";
import { Paged } from "../../components/paged.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { Filters } from "./filters.tsx";
import { FindRequest } from "./find-request.tsx";
import { RequestTable } from "./request-table.tsx";

const route = getRouteApi("/requests");

/** The columns of the file. Tags have no commas. */
const columns: CsvColumns<Call> = {
  id: ({ id }) => id,
  ended_at: ({ created_at }) => new Date(created_at * 1_000).toISOString(),
  model: ({ model }) => model,
  endpoint: ({ endpoint }) => endpoint,
  key: ({ key }) => key,
  status: ({ status }) => status,
  error: ({ error }) => error,
  tags: ({ tags }) => tags.join(","),
  session_id: ({ session_id }) => session_id,
  user: ({ user }) => user,
  batch: ({ batch }) => batch,
  input_tokens: ({ input_tokens }) => input_tokens,
  output_tokens: ({ output_tokens }) => output_tokens,
  cached_tokens: ({ cached_tokens }) => cached_tokens,
  cost_usd: ({ cost_usd }) => ({ usd: cost_usd }),
};

/** The filters are in the address, so that they survive a reload and can be linked. */
export function Requests() {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const isFiltered = Object.values(values).some(Boolean);
  return (
    <Page
      title="Requests"
      intro={
        <>
          Every call that cost something or failed after it was accepted. <ContentNote />
        </>
      }
      actions={<FindRequest />}
    >
      <Filters values={values} onChange={(search: Values) => void navigate({ search })} />
      <Paged
        query={useInfiniteQuery(requestsQuery(values))}
        skeleton={<Skeleton rows={8} />}
        empty={
          isFiltered ? (
            <EmptyState title="No request matches">
              <p>Take a filter off, or choose other days.</p>
              <Button onClick={() => void navigate({ search: {} })}>Clear the filters</Button>
            </EmptyState>
          ) : (
            <FirstCall />
          )
        }
      >
        {(calls) => (
          <>
            <DownloadCsv name="requests.csv" columns={columns} rows={calls} />
            <RequestTable calls={calls} caption="Requests, newest first" />
          </>
        )}
      </Paged>
    </Page>
  );
}
