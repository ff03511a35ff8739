import { expect } from "vitest";
import { managedAccount } from "./account-caller.ts";
import { type Client, eventually } from "./service.ts";
import { asking, localModel } from "./service-setup.ts";

/** The fields of endpoints, deliveries and jobs that the tests read. */
export interface Delivery {
  readonly id: string;
  readonly webhook_id: string;
  readonly object_id: string;
  readonly type: string;
  readonly status: string;
  readonly attempts: readonly { readonly status_code: number | null; readonly error: string | null }[];
  readonly next_attempt_at: number | null;
}
interface Endpoint {
  readonly id: string;
  readonly secret: string;
  readonly disabled_reason: string | null;
}

/** An account that receives webhooks. */
export async function webhookAccount(service: Client) {
  const customer = await managedAccount(service, "1.00");
  const { ask, post } = customer;
  const request = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await ask(method, `/webhooks${path}`, body);
    expect([answer.status, answer.body.error]).toEqual([expect.toSatisfy((status) => status < 300), undefined]);
    return answer.body as unknown as T;
  };
  const deliveries = async (query = "") =>
    (await request<{ data: Delivery[] }>("GET", `/deliveries?limit=200${query}`)).data;
  return {
    ...customer,
    request,
    createEndpoint: (url: string, fields: object = {}) =>
      request<Endpoint>("POST", "/endpoints", { url, events: ["job.*"], ...fields }),
    endpoint: (id: string) => request<Endpoint>("GET", `/endpoints/${id}`),
    deliveries,
    /** The account's only delivery once it fits. */
    delivery: (fits: (delivery: Delivery) => boolean) =>
      eventually(async () => {
        const [only, ...more] = await deliveries();
        if (more.length > 0) throw new Error("there are several");
        return only && fits(only) ? only : undefined;
      }),
    /** Submits a job and returns its id. It ends by itself, which is an event. */
    async submitJob(headers: Record<string, string> = {}, model: string = localModel): Promise<string> {
      const answer = await post("/v1/chat/completions", asking(model), {
        headers: { prefer: "respond-async", ...headers },
      });
      const { id } = (await answer.json()) as { id: string };
      expect([answer.status, id]).toEqual([202, expect.stringMatching(/^job_/)]);
      return id;
    },
  };
}
