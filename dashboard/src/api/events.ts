import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";

const shown = 30;
const pollMs = 60_000;
/** The bell shows this page of events, of an account or of the service. */
export const eventPage = { query: { limit: shown } };
export const eventPoll = { refetchInterval: pollMs };

export const eventsQuery = queryOptions({
  queryKey: ["events"],
  queryFn: async ({ signal }) => (await unwrap(client.GET("/v1/events", { params: eventPage, signal }))).data,
  ...eventPoll,
});
