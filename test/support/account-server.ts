import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { onTestFinished } from "vitest";
import { authenticate } from "../../api/admission/authenticate.ts";
import { errorHandler, noSuchRoute } from "../../api/http/errors.ts";
import { requestId } from "../../api/http/headers.ts";
import type { Scope } from "../../api/keys/store.ts";
import { createRefusals } from "../../api/refusals/index.ts";
import { createAccountRouter } from "../../api/routes/account/index.ts";
import { createByteBudget } from "../../shared/platform/byte-budget.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { startInstance } from "./keys-instance.ts";
import { captureOf, createMovableClock, held, holdOf, leasesOf, openAccount } from "./money-setup.ts";
import { testStores } from "./servers.ts";

/** The account interface alone, over HTTP, with a manual clock. It ends with the test. */
export async function startAccountServer() {
  const clock = createMovableClock();
  const instance = await startInstance(await testStores(), clock);
  const { money, keys } = instance;
  const log = createLogger("test", "silent");
  const http = { clock, log, bodyBudget: createByteBudget(1024 * 1024) };
  const app = express();
  app.disable("etag").set("query parser", "simple");
  app.use(requestId(clock));
  const refusals = createRefusals({ mongo: instance.mongo, clock, log });
  onTestFinished(() => refusals.stop());
  const deps = { ...instance, ...http, refusals, leases: leasesOf(money), payments: { topups: undefined } };
  app.use(createAccountRouter(deps, (req) => authenticate(keys, req)));
  app.use(noSuchRoute);
  app.use(errorHandler(http));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;

  async function openKey(account: string, scopes: readonly Scope[]) {
    const { key, secret } = await keys.issue(account, { scopes });
    type Sent = Omit<RequestInit, "headers"> & { readonly headers?: Readonly<Record<string, string>> };
    const send = (path: string, init: Sent = {}) =>
      fetch(url + path, { ...init, headers: { authorization: `Bearer ${secret}`, ...init.headers } });
    return {
      id: key.id,
      send,
      /** Returns the status and the body of a JSON response. */
      async ask(path: string, { method = "GET", body }: { method?: string; body?: unknown } = {}) {
        const response = await send(path, {
          method,
          ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
        });
        return { status: response.status, body: (await response.json()) as Answer };
      },
    };
  }

  /** An account with a key for itself and two for calls. */
  async function openCustomer(balanceNanoUsd = 1_000_000_000n) {
    const account = await openAccount(money, balanceNanoUsd);
    const [manager, first, second] = await Promise.all([
      openKey(account, ["manage"]),
      openKey(account, ["inference"]),
      openKey(account, ["inference"]),
    ]);
    const call = async (more: Partial<Parameters<typeof captureOf>[2]> & { costNanoUsd?: bigint } = {}) => {
      const { costNanoUsd = 1_000n, ...fields } = more;
      const hold = await held(money, holdOf(account, 1_000_000n, { expiresAt: clock.now() + 600_000 }));
      await money.charge(captureOf(hold, costNanoUsd, { key: first.id, ...fields }));
      return hold.requestId;
    };
    return { account, manager, first, second, call };
  }

  return { ...instance, clock, url, openKey, openCustomer };
}

/** The fields that tests read one by one. */
interface Answer {
  readonly data: readonly { readonly id: string; readonly [field: string]: unknown }[];
  readonly has_more: boolean;
  readonly next: string | null;
  readonly error: { readonly param?: string; readonly code: string };
  readonly [field: string]: unknown;
}
