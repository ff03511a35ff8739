import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { createSecrets, type Secrets } from "../../shared/secrets/index.ts";
import { createWebhooks, type Webhooks } from "../../shared/webhooks/index.ts";
import { managedAccount } from "./account-caller.ts";
import { movableClock } from "./movable-clock.ts";
import { ofFile } from "./of-file.ts";
import { testStores } from "./servers.ts";
import { type Environment, environment, type Service, type ServiceOptions, startService } from "./service.ts";
import { webhookEnvironment } from "./webhook-receiver.ts";

/** No worker sends what is recorded: tests claim the deliveries themselves. */
const unsent = { WORKER_POOLS: "chat,embeddings,image,media,batches,maintenance" };

interface WebhookService {
  readonly service: Service;
  /** The store of the service, as its workers see it. */
  readonly webhooks: Webhooks;
  readonly secrets: Secrets;
  readonly mongo: Mongo;
  readonly now: () => number;
  readonly advance: (ms: number) => void;
}

/** One service for all tests of a file, and its store of webhooks. */
export const webhooksOfFile = (env: Environment = {}, often: ServiceOptions["often"] = []): WebhookService =>
  ofFile(
    async (onEnd) => {
      const stores = await testStores();
      const all = { ...(await webhookEnvironment()), ...unsent, ...env };
      const { clock, advance } = movableClock();
      const service = await startService(stores, { env: all, clock, onEnd, often });
      const mongo = await connectMongo(stores.MONGODB_URI, clock, createLogger("test", "silent"));
      onEnd(() => mongo.close());
      const secrets = createSecrets(loadConfig(environment(stores, all)));
      const webhooks = createWebhooks({ mongo, secrets, clock });
      return { service, webhooks, secrets, mongo, advance, now: () => clock.now() };
    },
    () => {},
  );

/** A public address where nobody answers. */
export const hookUrl = (path: string): string => `https://203.0.114.7/${path}`;

/** The fields of endpoints and deliveries that tests read. */
export interface WebhookBody {
  readonly id: string;
  readonly secret: string;
  readonly status: string;
  readonly webhook_id: string;
  readonly body: string | null;
  readonly data: readonly WebhookBody[];
  readonly error: { readonly code: string; readonly param: string | null };
  readonly [field: string]: unknown;
}

/** An account, its key with the scope `manage`, and what it asks of the routes of webhooks. */
export async function webhookOwner(service: Service) {
  const owner = await managedAccount(service);
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await owner.ask(method, `/webhooks${path}`, body);
    return { status: answer.status, body: answer.body as unknown as WebhookBody };
  };
  const create = async (fields: object = {}) => {
    const { status, body } = await ask("POST", "/endpoints", { url: hookUrl("a"), events: ["*"], ...fields });
    if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
    return body;
  };
  const deliveries = async (query = "") => (await ask("GET", `/deliveries?limit=200&${query}`)).body.data;
  return { ...owner, ask, create, deliveries };
}
