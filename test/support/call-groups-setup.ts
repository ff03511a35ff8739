import { onTestFinished } from "vitest";
import { createQueues, type PaidCall } from "#jobs";
import { collect, log, openReader, paidCall } from "./jobs-setup.ts";
import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";
import { held, holdOf, openAccount, startMoney, times } from "./money-setup.ts";
import { testStores } from "./servers.ts";
import { type Environment, startService } from "./service.ts";
import { asking, providerModel } from "./service-setup.ts";

const heldNanoUsd = 1_000_000n;

/** A service whose worker runs this many chat calls at once, and the test's own API instance, which admits calls. */
export async function startCallGroups(concurrency: number, env: Environment = {}) {
  const stores = await testStores();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const service = await startService(stores, {
    env: {
      OPENAI_API_KEY: "sk-operator",
      OPENAI_BASE_URL: provider.url,
      WORKER_CONCURRENCY_CHAT: String(concurrency),
      ...env,
    },
  });
  const { money } = await startMoney(stores.MONGODB_URI);
  const account = await openAccount(money, 1_000n * heldNanoUsd);
  const { reader, commands } = await openReader(stores);
  await reader.start();
  const queues = createQueues({ redis: commands, log });
  onTestFinished(() => queues.close());

  /** Admits calls in one turn of the event loop; each one has a different text. */
  async function admit(
    texts: readonly string[],
    fields: Partial<PaidCall> = {},
    fieldsOf: (index: number) => Partial<PaidCall> = () => ({}),
  ) {
    const calls = await Promise.all(
      texts.map(async (text, index) => {
        const { requestId } = await held(money, holdOf(account, heldNanoUsd));
        const body = { ...asking(providerModel, text), stream: fields.stream ?? false };
        const payload = paidCall(requestId, {
          account,
          model: providerModel,
          format: "chat",
          held: String(heldNanoUsd),
          outputCap: 100,
          body: { json: JSON.stringify(body) },
          // As long as in production.
          deadlineAt: Date.now() + 900_000,
          ...fields,
          ...fieldsOf(index),
        });
        return { requestId, payload, entry: () => money.findEntry(requestId), ...collect(reader, requestId) };
      }),
    );
    await Promise.all(calls.map(({ payload }) => queues.enqueue("chat", payload, 0)));
    return calls;
  }

  return { stores, service, provider, money, account, reader, queues, admit };
}

/** The texts that a provider received, in order. */
export const textsOf = ({ requests }: MockOpenai) =>
  requests.map(({ body }) => (body["messages"] as { content: string }[])[0]?.content);

export const numbered = (name: string, count: number) => times(count, (i) => `${name} ${i}`);
