import { z } from "zod";
import type { Caller, Keys } from "#keys";
import { formatUsd, type LedgerEntry, type Money, requestStatuses } from "#money";
import type { Refusal, Refusals } from "#refusals";
import { pageQuery, parse, timeSpan } from "../../http/input.ts";
import { found, renderCalls, unixSeconds } from "../../http/json-routes.ts";
import { renderAttempts } from "../render-attempts.ts";
import type { AccountHandler } from "./handler.ts";
import { askedKey, visibleKey } from "./own-key.ts";

interface RequestDeps {
  readonly keys: Keys;
  readonly money: Money;
  readonly refusals: Pick<Refusals, "find">;
}

const text = z.string().min(1).max(200);
const requestsQuery = pageQuery.extend({
  status: z.enum(requestStatuses).optional(),
  model: text.optional(),
  key: text.optional(),
  ...timeSpan,
});

/** Tokens of an entry, as the usage by day counts them. */
export function tokensOfCall({ usage = {} }: Partial<Pick<NonNullable<LedgerEntry["request"]>, "usage">>) {
  const { input = 0, cached_input = 0, cache_write = 0, cache_write_1h = 0, audio_input = 0 } = usage;
  return {
    input: input + cached_input + cache_write + cache_write_1h + audio_input,
    output: (usage.output ?? 0) + (usage.audio_output ?? 0),
    cached: cached_input,
  };
}

type Shown = Pick<LedgerEntry, "id" | "request" | "costNanoUsd" | "createdAt">;

const renderRequest = ({ id, request, costNanoUsd, createdAt }: Shown, refunded: boolean) => {
  const { input, output, cached } = tokensOfCall(request ?? {});
  return {
    id,
    object: "request",
    key: request?.key ?? null,
    endpoint: request?.endpoint ?? null,
    model: request?.model ?? null,
    status: request?.status ?? "failed",
    error: request?.error ?? null,
    cost_usd: formatUsd(costNanoUsd),
    refunded,
    usage: request?.usage ?? {},
    estimated: request?.estimated ?? false,
    streamed: request?.streamed ?? null,
    finish_reason: request?.finishReason ?? null,
    input_tokens: input,
    output_tokens: output,
    cached_tokens: cached,
    created_at: unixSeconds(createdAt),
    queue_ms: request?.queueMs ?? null,
    first_token_ms: request?.firstTokenMs ?? null,
    total_ms: request?.totalMs ?? null,
  };
};

/** It was never a call: nothing ran, and nothing was held. */
const renderRefusal = ({ requestId: id, key, endpoint, status, code, createdAt }: Refusal) => ({
  ...renderRequest({ id, costNanoUsd: 0n, createdAt }, false),
  key,
  endpoint,
  status: "refused",
  error: code,
  http_status: status,
  attempts: [],
});

export function requestHandlers({ keys, money, refusals }: RequestDeps) {
  /** What a key that sees one key alone may see of it. */
  const isVisible = (caller: Caller, key: string | null | undefined) => [undefined, key].includes(visibleKey(caller));

  return {
    list: async (req, _res, caller) => {
      const { key, ...query } = parse(requestsQuery, req.query);
      const own = { account: caller.account, key: await askedKey(keys, caller, key) };
      const page = await money.findCalls({ ...query, ...own });
      const refunded = await money.refundedAmong(page.calls);
      return renderCalls(page, (entry) => renderRequest(entry, refunded.has(entry)));
    },
    get: async (req, _res, caller) => {
      const { id } = req.params;
      const entry = await money.entry(caller.account, id);
      if (!entry?.request) {
        const refusal = await refusals.find(caller.account, id);
        return renderRefusal(found(refusal && isVisible(caller, refusal.key) ? refusal : undefined, "request"));
      }
      const shown = found(isVisible(caller, entry.request.key) ? entry : undefined, "request");
      const refunded = await money.refundedAmong([shown]);
      return {
        ...renderRequest(shown, refunded.has(shown)),
        http_status: null,
        attempts: renderAttempts(shown.request?.attempts ?? []),
      };
    },
  } satisfies Record<string, AccountHandler>;
}
