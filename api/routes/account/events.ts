import { listOf, pageQuery, readPage } from "../../http/page.ts";
import { event } from "../webhook-objects.ts";
import { route } from "./route.ts";

export const eventRoutes = [
  route({
    method: "get",
    path: "/v1/events",
    operationId: "listEvents",
    summary: "The account's events of the last 30 days, newest first, whether or not it has endpoints",
    description: "Without those of calls: `/v1/jobs` lists calls that are jobs.",
    scope: "manage",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(event).meta({ id: "EventList" }),
    handle: ({ webhooks }, { who: { account }, query }) =>
      readPage(query, (page) => webhooks.notices.list(account, page)),
  }),
];
