import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { recentRequestsQuery } from "../../api/requests.ts";
import { buttonClass } from "../../components/button.tsx";
import { FirstCall } from "../../components/first-call.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { RequestTable } from "../requests/request-table.tsx";
import { BalanceFigures } from "./balance-figures.tsx";
import { SpendFigures } from "./spend-figures.tsx";
import { SpendSection } from "./spend-section.tsx";

const recent = 8;

export function Overview() {
  return (
    <Page
      title="Overview"
      actions={
        <Link to="/playground" className={buttonClass("primary")}>
          Open the playground
        </Link>
      }
    >
      <BalanceFigures />
      <Calls />
    </Page>
  );
}

function Calls() {
  return (
    <QueryView query={useQuery(recentRequestsQuery(recent))}>
      {(calls) =>
        calls.length === 0 ? (
          <FirstCall />
        ) : (
          <>
            <SpendFigures />
            <SpendSection />
            <section className="flex flex-col gap-4">
              <div className="flex items-center justify-between gap-3">
                <h2 className="text-base font-semibold">Recent requests</h2>
                <Link to="/requests" className="text-accent hover:underline">
                  All requests
                </Link>
              </div>
              <RequestTable calls={calls} caption="Recent requests" />
            </section>
          </>
        )
      }
    </QueryView>
  );
}
