import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { client, defined, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];
export type Endpoint = Schemas["WebhookEndpoint"];
export type NewEndpoint = Schemas["NewWebhookEndpoint"];
export type EndpointPatch = Schemas["WebhookEndpointPatch"];
export type Delivery = Schemas["WebhookDelivery"];
export type DeliveryWithBody = Schemas["WebhookDeliveryWithBody"];

/** Events come from elsewhere. */
const idlePollMs = 10_000;

export const endpointsQuery = queryOptions({
  queryKey: ["webhooks", "endpoints"],
  // An account has at most ten.
  queryFn: async ({ signal }) =>
    (await unwrap(client.GET("/v1/webhooks/endpoints", { params: { query: { limit: 50 } }, signal }))).data,
  refetchInterval: idlePollMs,
});

/** Returns true if an endpoint is sent events of this type. */
export const receives = ({ disabled, events }: Endpoint, type: Delivery["type"]): boolean =>
  !disabled && ["*", type.replace(/\..*/, ".*"), type].some((each) => events.includes(each));

const of = (id: string) => ({ params: { path: { id } } });

export const createEndpoint = (body: NewEndpoint) => unwrap(client.POST("/v1/webhooks/endpoints", { body }));
export const updateEndpoint = (id: string, body: EndpointPatch) =>
  unwrap(client.PATCH("/v1/webhooks/endpoints/{id}", { ...of(id), body }));
export const deleteEndpoint = (id: string) => unwrap(client.DELETE("/v1/webhooks/endpoints/{id}", of(id)));
export const testEndpoint = (id: string) =>
  unwrap(client.POST("/v1/webhooks/endpoints/{id}/test", { ...of(id), body: {} }));
export const recoverEndpoint = (id: string, since: number) =>
  unwrap(client.POST("/v1/webhooks/endpoints/{id}/recover", { ...of(id), body: { since } }));
/** Returns the new secret: that of callbacks without an id. */
export async function rotateSecret(id: string | undefined, grace_seconds: number): Promise<string> {
  const body = { grace_seconds };
  const rotated = await (id === undefined
    ? unwrap(client.POST("/v1/webhooks/default/rotate-secret", { body }))
    : unwrap(client.POST("/v1/webhooks/endpoints/{id}/rotate-secret", { ...of(id), body })));
  return rotated.secret;
}

export const webhooksChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["webhooks"] });

/** The compiler compares them with the API's. */
const isEventType: Readonly<Record<Delivery["type"], true>> = {
  "job.completed": true,
  "job.failed": true,
  "job.cancelled": true,
  "job.expired": true,
  "response.completed": true,
  "response.failed": true,
  "response.incomplete": true,
  "response.cancelled": true,
  "batch.completed": true,
  "batch.failed": true,
  "batch.expired": true,
  "batch.cancelled": true,
  "batch.paused": true,
  "message_batch.ended": true,
  "balance.low": true,
  "budget.threshold": true,
  "topup.completed": true,
  "key.expiring": true,
  "provider_key.invalid": true,
  "upstream.down": true,
  "upstream.key_refused": true,
  "upstream.recovered": true,
  "webhook.test": true,
};
export const eventTypes = Object.keys(isEventType) as readonly Delivery["type"][];

export const deliveryStatuses = ["pending", "delivering", "delivered", "retrying", "failed", "skipped"] as const;

export interface Filters {
  readonly endpoint?: string | undefined;
  readonly type?: string | undefined;
  readonly status?: string | undefined;
}

const pollMs = 3_000;
/** A retry that is due later may be hours away. */
const soonSeconds = 60;
const isMoving = ({ status, next_attempt_at: next }: Delivery): boolean =>
  status === "pending" ||
  status === "delivering" ||
  (status === "retrying" && next !== null && next * 1000 - Date.now() < soonSeconds * 1000);

export const deliveriesQuery = ({ endpoint, type, status }: Filters) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", "deliveries", endpoint, type, status],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/v1/webhooks/deliveries", {
          params: {
            query: defined({
              limit: 50,
              endpoint,
              type: eventTypes.find((each) => each === type),
              status: deliveryStatuses.find((each) => each === status),
              after: pageParam,
            }),
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state }) => {
      const [first, ...more] = state.data?.pages ?? [];
      return more.length > 0 ? false : first?.data.some(isMoving) ? pollMs : idlePollMs;
    },
  });

export const deliveryQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhooks", "delivery", id],
    queryFn: ({ signal }) => unwrap(client.GET("/v1/webhooks/deliveries/{id}", { ...of(id), signal })),
    refetchInterval: ({ state }) => (state.data && !isMoving(state.data) ? false : pollMs),
  });

export const resend = (id: string) => unwrap(client.POST("/v1/webhooks/deliveries/{id}/redeliver", of(id)));
