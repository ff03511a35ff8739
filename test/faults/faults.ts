/** The faults of an area, and the tests that should catch them: paths, or prefixes of paths. */
export interface Area {
  readonly tests: readonly string[];
  /** Keyed by the name of the fault: a text that the sources contain once, and its replacement. */
  readonly faults: Readonly<Record<string, readonly [find: string, replace: string]>>;
}

export const areas: Readonly<Record<string, Area>> = {
  money: {
    tests: [
      "test/unit/money",
      "test/unit/catalog-bound",
      "test/unit/catalog-prices",
      "test/integration/money-",
      "test/integration/billing",
      "test/integration/buyback-charges",
      "test/integration/payments-buyback",
      "test/chaos/api-killed",
    ],
    faults: {
      "a hold may exceed what is available": ["available: { $gte: sumNanoUsd }", "available: { $gte: 0n }"],
      "a frozen account can hold": ["frozen: false, ...enough", "...enough"],
      "a hold id can be taken twice": ["...enough, ...absent }", "...enough }"],
      "more than the hold is charged": [
        "const chargedNanoUsd = costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;",
        "const chargedNanoUsd = costNanoUsd;",
      ],
      "costs are rounded down": ["(amount + perNanoUsd / 2n) / perNanoUsd", "amount / perNanoUsd"],
      "the price band begins one token early": [
        "if (inputTokens <= band.aboveInputTokens) break;",
        "if (inputTokens < band.aboveInputTokens) break;",
      ],
      "a refund can be recorded twice": [
        "_id: refundOf(requestId),",
        "_id: `${refundOf(requestId)}:${randomBase62(4)}`,",
      ],
      "a refund doubles the buyback instead of reversing it": [
        "nanoUsd: -call.buyback.nanoUsd",
        "nanoUsd: call.buyback.nanoUsd",
      ],
      "the hold of several choices covers one": [
        "const step = BigInt(size.choices) * dearest.output;",
        "const step = dearest.output;",
      ],
      "the first undelivered answer of a dead instance is not refunded": [
        '"reply.number": { $gte: next }',
        '"reply.number": { $gt: next }',
      ],
    },
  },
  "leases and sweeping": {
    tests: ["test/integration/leases", "test/integration/money-sweep", "test/chaos/leases"],
    faults: {
      "a lease gives out the same money again": ["lease.unusedNanoUsd -= heldNanoUsd;", ""],
      "a call of a lease can end twice": [
        "if (!lease.openCalls.delete(requestId)) return;",
        "lease.openCalls.delete(requestId);",
      ],
      "what a call cost goes back to the lease": [
        "lease.unusedNanoUsd += heldNanoUsd - costNanoUsd;",
        "lease.unusedNanoUsd += heldNanoUsd;",
      ],
      "a lease that was renewed since it was read is closed": [
        "const open = sweptAt ? { [`holds.${lease}.expiresAt`]: sweptAt } : {",
        "const open = sweptAt ? { [`holds.${lease}`]: { $exists: true } } : {",
      ],
      "a lease can grow beyond the balance": [
        'const granted = { $min: ["$available", { $add: [needNanoUsd, ahead] }] };',
        "const granted = { $add: [needNanoUsd, ahead] };",
      ],
      "the leases of living instances are closed": [
        "|| !(await isServing(instanceOf(requestId), heldAt));",
        "|| heldAt < new Date(clock.now());",
      ],
      "the sweeper does not wait after MongoDB came back": [
        "return upSince !== undefined && clock.now() - upSince > recoveryMs;",
        "return upSince !== undefined;",
      ],
      "an instance trusts a lease from before a gap in its registration": [
        "since !== undefined && stoodAt >= since &&",
        "since !== undefined &&",
      ],
      "a call may outlive its lease": [
        "amount <= lease.unusedNanoUsd && request.expiresAt <= lease.callsEndAt;",
        "amount <= lease.unusedNanoUsd;",
      ],
      "late costs are not settled": [
        "if (cost !== lease.cost) await settleDifference(lease, cost);",
        "if (cost < lease.cost) await settleDifference(lease, cost);",
      ],
    },
  },
  "queues and replies": {
    tests: [
      "test/unit/frames",
      "test/integration/replies",
      "test/integration/queues",
      "test/integration/answers",
      "test/integration/errors-limits",
      "test/integration/stream-bursts",
      "test/integration/idempotency",
      "test/chaos/worker-killed",
      "test/chaos/frames",
      "test/chaos/api-killed",
    ],
    faults: {
      "a second delivery runs the call again": [
        "if (await money.entry(account, requestId)) return undefined;\n    const job",
        "if (await money.entry(account, requestId)) return undefined;\n    if (requestId) return {};\n    const job",
      ],
      "a gap in the frames is ignored": [
        'if (frame.seq > call.nextSeq)\n        return background("a call with a missing frame could not be ended", call, fail(call, frameLost()));',
        "",
      ],
      "a frame that was written twice is delivered twice": [
        "if (frame.seq < call.nextSeq) return; // The frame was repeated after a reconnect.",
        "",
      ],
      "frames of a second attempt follow those of the first": [
        "if (call.attempt !== undefined && !(hasIdempotencyKey(call) && seq === 0)) return false;",
        "",
      ],
      "long text is split inside a character": [
        "if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;",
        "",
      ],
      "calls that have ended are run again with their job": [
        "else if (open.size > 0 && open.size < payloadsOf(job.data).length)",
        "else if (open.size < 0)",
      ],
      "a slow reader does not pause its worker": [
        'call.isPaused = true;\n  call.pace("pause");',
        "call.isPaused = true;",
      ],
      "a call is forgotten before its answer is delivered": [
        'if (stream || idempotencyKeyId !== undefined || held === "0") return undefined;',
        'if (!stream || idempotencyKeyId !== undefined || held === "0") return undefined;',
      ],
      "a call whose time is over is run": ['if (clock.now() >= payload.deadlineAt) call.abort("deadline");', ""],
      "the running work of a caller who disconnected from JSON is aborted": [
        'if (record.attempts.length === 0 || payload.held === "0") call.abort("disconnected");',
        'call.abort("disconnected");',
      ],
    },
  },
  "formats and conversion": {
    tests: ["test/unit/formats-", "test/unit/conversion-", "test/unit/catalog-capabilities"],
    faults: {
      "hidden reasoning is not counted as output": [
        'Math.max(count(given["completion_tokens"]), count(given["total_tokens"]) - prompt)',
        'count(given["completion_tokens"])',
      ],
      "cached tokens count twice": ["rest -= taken;", ""],
      "an answer that was cut looks complete in Messages": ['if (finish_reason === "length") return "max_tokens";', ""],
      "Messages counts cached input as uncached": [
        "const uncached = count(prompt_tokens) - counted.cached_input;",
        "const uncached = count(prompt_tokens);",
      ],
      "two tool calls of a stream become one": [
        "if (known !== undefined && !(name && (id ? id !== known.id : index == null)))",
        "if (known !== undefined)",
      ],
      "invalid arguments of a tool call are lost": [
        "argumentsOf(args) ?? { INVALID_JSON: text(args) }",
        "argumentsOf(args) ?? {}",
      ],
      "a chat stream has no end mark": [
        "JSON.stringify(last)}\\n\\ndata: [DONE]\\n\\n`",
        "JSON.stringify(last)}\\n\\n`",
      ],
      "sequence numbers of Responses begin with 1": ["sequence_number: next++", "sequence_number: ++next"],
      "Gemini stores the requests of tenants": ["generationConfig, store: false }", "generationConfig }"],
      "a file is sent as an image": [
        'if (kindOf(text(mimeType)) !== "image")',
        'if (kindOf(text(mimeType)) === "audio")',
      ],
    },
  },
  "keys and limits": {
    tests: ["test/unit/keys", "test/integration/key", "test/integration/budget", "test/integration/limits"],
    faults: {
      "one more call in flight than the limit": ["if taken >= slots then", "if taken > slots then"],
      "one more request a minute than the limit": [
        "local forRequest = (requests + 1 - requestsPerMinute)",
        "local forRequest = (requests - requestsPerMinute)",
      ],
      "the tokens of the call itself do not count against the limit": [
        "(tokens + tonumber(first) - tokensPerMinute)",
        "(tokens - tokensPerMinute)",
      ],
      "open calls do not count against the budget": [
        "if spent + open + amount > limit then",
        "if spent + amount > limit then",
      ],
      "ended calls are not counted as spent": [
        "        spent = spent + tonumber(first)\n        budgetChanged = true",
        "        budgetChanged = true",
      ],
      "a slot is freed twice": [
        "elseif redis.call('ZREM', running, id) == 1 then",
        "elseif redis.call('ZREM', running, id) >= 0 then",
      ],
      "a frozen account gets a slot": ["if (caller.frozen) {", "if (caller.frozen && check.reached) {"],
      "an expired key gets a slot": ["    assertNotExpired(caller, clock);\n    const quota", "    const quota"],
      "a revoked key stays in the cache": ["cached && cached.epoch === current &&", "cached &&"],
      "a key without the scope calls models": [
        'const lacksScope = !caller.scopes.includes("inference");',
        "const lacksScope = caller.scopes.length === 0;",
      ],
    },
  },
  "files and payments": {
    tests: [
      "test/unit/files",
      "test/unit/payments",
      "test/integration/files",
      "test/integration/uploads",
      "test/integration/payments",
      "test/integration/x402",
    ],
    faults: {
      "storage is rounded down": [
        "(BigInt(bytes) * nanoUsdPerGb + bytesPerGb / 2n) / bytesPerGb",
        "(BigInt(bytes) * nanoUsdPerGb) / bytesPerGb",
      ],
      "an upload that was captured free becomes active": [
        'if (entry.request?.status !== "succeeded") return null;',
        "",
      ],
      "parts of a wrong size are accepted": ["else if (part.bytes !== size)", "else if (part.bytes < 0)"],
      "a body that broke off is stored": ['else if (received < bytes) throw incomplete("it ended");', ""],
      "an upload that became active meanwhile is expired": [
        'status: { $in: ["pending" as const, "active" as const] }, dueAt: { $lte: now } };',
        'status: { $in: ["pending" as const, "active" as const] } };',
      ],
      "a payment pays for another request": [
        'if (quote.requestHash !== requestHash) return "quote_for_another_request";',
        "",
      ],
      "a second payment uses a quote that is claimed": [
        'if (messageHash !== payment.messageHash) return "quote_already_used";',
        "",
      ],
      "the fee payer can be drained": [
        'if (!(await isolated.then(() => true).catch(() => false))) return "fee_payer_not_isolated";',
        "await isolated.catch(() => false);",
      ],
      "a price that rose is paid with the old quote": [
        'if (unitsOf(priceNanoUsd) > BigInt(quote.requirements.amount)) return refused("price_changed", payment);',
        "",
      ],
      "a payment that landed is refused": [
        'if (outcome.kind !== "refused") return outcome;',
        "if (outcome) return outcome;",
      ],
    },
  },
};
