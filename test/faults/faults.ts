/** A deliberate fault: in the one file with this name and text, `find` becomes `replace`. */
export interface Fault {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** The faults of an area, and the tests that should catch them: paths, or prefixes of paths. */
export interface Area {
  readonly name: string;
  readonly tests: readonly string[];
  readonly faults: readonly Fault[];
}

const money: Area = {
  name: "money",
  tests: [
    "test/unit/money",
    "test/unit/catalog-bound",
    "test/unit/catalog-prices",
    "test/integration/money-",
    "test/integration/billing",
    "test/integration/buyback-charges",
    "test/chaos/api-killed",
  ],
  faults: [
    {
      name: "a hold may exceed what is available",
      file: "holds.ts",
      find: "available: { $gte: sumNanoUsd }",
      replace: "available: { $gte: 0n }",
    },
    {
      name: "a frozen account can hold",
      file: "holds.ts",
      find: "frozen: false, ...enough",
      replace: "...enough",
    },
    {
      name: "a hold id can be taken twice",
      file: "holds.ts",
      find: "...enough, ...absent }",
      replace: "...enough }",
    },
    {
      name: "more than the hold is charged",
      file: "capture.ts",
      find: "const chargedNanoUsd = costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;",
      replace: "const chargedNanoUsd = costNanoUsd;",
    },
    {
      name: "costs are rounded down",
      file: "prices.ts",
      find: "(amount + perNanoUsd / 2n) / perNanoUsd",
      replace: "amount / perNanoUsd",
    },
    {
      name: "the price band begins one token early",
      file: "prices.ts",
      find: "if (inputTokens <= band.aboveInputTokens) break;",
      replace: "if (inputTokens < band.aboveInputTokens) break;",
    },
    {
      name: "a refund can be recorded twice",
      file: "movements.ts",
      find: "_id: refundOf(requestId),",
      replace: "_id: `${refundOf(requestId)}:${randomBase62(4)}`,",
    },
    {
      name: "a refund doubles the buyback instead of reversing it",
      file: "movements.ts",
      find: "nanoUsd: -call.buyback.nanoUsd",
      replace: "nanoUsd: call.buyback.nanoUsd",
    },
    {
      name: "the hold of several choices covers one",
      file: "bound.ts",
      find: "const step = BigInt(size.choices) * dearest.output;",
      replace: "const step = dearest.output;",
    },
    {
      name: "the first undelivered answer of a dead instance is not refunded",
      file: "undelivered.ts",
      find: '"reply.number": { $gte: next }',
      replace: '"reply.number": { $gt: next }',
    },
  ],
};

const leases: Area = {
  name: "leases and sweeping",
  tests: ["test/integration/leases", "test/integration/money-sweep", "test/chaos/leases"],
  faults: [
    {
      name: "a lease gives out the same money again",
      file: "leases.ts",
      find: "lease.unusedNanoUsd -= heldNanoUsd;",
      replace: "",
    },
    {
      name: "a call of a lease can end twice",
      file: "leases.ts",
      find: "if (!lease.openCalls.delete(requestId)) return;",
      replace: "lease.openCalls.delete(requestId);",
    },
    {
      name: "what a call cost goes back to the lease",
      file: "leases.ts",
      find: "lease.unusedNanoUsd += heldNanoUsd - costNanoUsd;",
      replace: "lease.unusedNanoUsd += heldNanoUsd;",
    },
    {
      name: "a lease that was renewed since it was read is closed",
      file: "closing.ts",
      find: "const open = sweptAt ? { [`holds.${lease}.expiresAt`]: sweptAt } : {",
      replace: "const open = sweptAt ? { [`holds.${lease}`]: { $exists: true } } : {",
    },
    {
      name: "a lease can grow beyond the balance",
      file: "lease.ts",
      find: 'const granted = { $min: ["$available", { $add: [needNanoUsd, ahead] }] };',
      replace: "const granted = { $add: [needNanoUsd, ahead] };",
    },
    {
      name: "the leases of living instances are closed",
      file: "sweep.ts",
      find: "|| !(await isServing(instanceOf(requestId), heldAt));",
      replace: "|| heldAt < new Date(clock.now());",
    },
    {
      name: "the sweeper does not wait after MongoDB came back",
      file: "sweep.ts",
      find: "return upSince !== undefined && clock.now() - upSince > recoveryMs;",
      replace: "return upSince !== undefined;",
    },
    {
      name: "an instance trusts a lease from before a gap in its registration",
      file: "leases.ts",
      find: "since !== undefined && stoodAt >= since &&",
      replace: "since !== undefined &&",
    },
    {
      name: "a call may outlive its lease",
      file: "leases.ts",
      find: "amount <= lease.unusedNanoUsd && request.expiresAt <= lease.callsEndAt;",
      replace: "amount <= lease.unusedNanoUsd;",
    },
    {
      name: "late costs are not settled",
      file: "closing.ts",
      find: "if (cost !== lease.cost) await settleDifference(lease, cost);",
      replace: "if (cost < lease.cost) await settleDifference(lease, cost);",
    },
  ],
};

const queues: Area = {
  name: "queues and replies",
  tests: [
    "test/unit/frames",
    "test/integration/replies",
    "test/integration/queues",
    "test/integration/answers",
    "test/integration/stream-bursts",
    "test/integration/idempotency",
    "test/chaos/worker-killed",
    "test/chaos/frames",
    "test/chaos/api-killed",
  ],
  faults: [
    {
      name: "a second delivery runs the call again",
      file: "stored-answer.ts",
      find: "if (await money.entry(account, requestId)) return undefined;\n    const job",
      replace:
        "if (await money.entry(account, requestId)) return undefined;\n    if (requestId) return {};\n    const job",
    },
    {
      name: "a gap in the frames is ignored",
      file: "index.ts",
      find: 'if (frame.seq > call.nextSeq)\n        return background("a call with a missing frame could not be ended", call, fail(call, frameLost()));',
      replace: "",
    },
    {
      name: "a frame that was written twice is delivered twice",
      file: "index.ts",
      find: "if (frame.seq < call.nextSeq) return; // The frame was repeated after a reconnect.",
      replace: "",
    },
    {
      name: "frames of a second attempt follow those of the first",
      file: "open-call.ts",
      find: "if (call.attempt !== undefined && !(hasIdempotencyKey(call) && seq === 0)) return false;",
      replace: "",
    },
    {
      name: "long text is split inside a character",
      file: "frames.ts",
      find: "if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;",
      replace: "",
    },
    {
      name: "calls that have ended are run again with their job",
      file: "pool.ts",
      find: "else if (open.size > 0 && open.size < payloadsOf(job.data).length)",
      replace: "else if (open.size < 0)",
    },
    {
      name: "a slow reader does not pause its worker",
      file: "write-answer.ts",
      find: 'call.isPaused = true;\n  call.pace("pause");',
      replace: "call.isPaused = true;",
    },
    {
      name: "a call is forgotten before its answer is delivered",
      file: "deliveries.ts",
      find: 'if (stream || idempotencyKeyId !== undefined || held === "0") return undefined;',
      replace: 'if (!stream || idempotencyKeyId !== undefined || held === "0") return undefined;',
    },
    {
      name: "a call whose time is over is run",
      file: "run-call.ts",
      find: 'if (clock.now() >= payload.deadlineAt) call.abort("deadline");',
      replace: "",
    },
    {
      name: "the running work of a caller who disconnected from JSON is aborted",
      file: "run-call.ts",
      find: 'if (record.attempts.length === 0 || payload.held === "0") call.abort("disconnected");',
      replace: 'call.abort("disconnected");',
    },
  ],
};

const formats: Area = {
  name: "formats and conversion",
  tests: ["test/unit/formats-", "test/unit/conversion-", "test/unit/catalog-capabilities"],
  faults: [
    {
      name: "hidden reasoning is not counted as output",
      file: "usage.ts",
      find: 'Math.max(count(given["completion_tokens"]), count(given["total_tokens"]) - prompt)',
      replace: 'count(given["completion_tokens"])',
    },
    {
      name: "cached tokens count twice",
      file: "usage.ts",
      find: "rest -= taken;",
      replace: "",
    },
    {
      name: "an answer that was cut looks complete in Messages",
      file: "convert-response-from-chat.ts",
      find: 'if (finish_reason === "length") return "max_tokens";',
      replace: "",
    },
    {
      name: "Messages counts cached input as uncached",
      file: "convert-response-from-chat.ts",
      find: "const uncached = count(prompt_tokens) - counted.cached_input;",
      replace: "const uncached = count(prompt_tokens);",
    },
    {
      name: "two tool calls of a stream become one",
      file: "tool-calls.ts",
      find: "if (known !== undefined && !(name && (id ? id !== known.id : index == null)))",
      replace: "if (known !== undefined)",
    },
    {
      name: "invalid arguments of a tool call are lost",
      file: "tool-calls.ts",
      find: "argumentsOf(args) ?? { INVALID_JSON: text(args) }",
      replace: "argumentsOf(args) ?? {}",
    },
    {
      name: "a chat stream has no end mark",
      file: "complete-chat.ts",
      find: "\\n\\ndata: [DONE]\\n\\n`",
      replace: "\\n\\n`",
    },
    {
      name: "sequence numbers of Responses begin with 1",
      file: "stream-output.ts",
      find: "sequence_number: next++",
      replace: "sequence_number: ++next",
    },
    {
      name: "Gemini stores the requests of tenants",
      file: "native.ts",
      find: "generationConfig, store: false }",
      replace: "generationConfig }",
    },
    {
      name: "a file is sent as an image",
      file: "convert-messages-from-chat.ts",
      find: 'if (kindOf(text(mimeType)) !== "image")',
      replace: 'if (kindOf(text(mimeType)) === "audio")',
    },
  ],
};

const limits: Area = {
  name: "keys and limits",
  tests: ["test/unit/keys", "test/integration/key", "test/integration/budget", "test/integration/limits"],
  faults: [
    {
      name: "one more call in flight than the limit",
      file: "limits-script.ts",
      find: "if taken >= slots then",
      replace: "if taken > slots then",
    },
    {
      name: "one more request a minute than the limit",
      file: "limits-script.ts",
      find: "local forRequest = (requests + 1 - requestsPerMinute)",
      replace: "local forRequest = (requests - requestsPerMinute)",
    },
    {
      name: "the tokens of the call itself do not count against the limit",
      file: "limits-script.ts",
      find: "(tokens + tonumber(first) - tokensPerMinute)",
      replace: "(tokens - tokensPerMinute)",
    },
    {
      name: "open calls do not count against the budget",
      file: "limits-script.ts",
      find: "if spent + open + amount > limit then",
      replace: "if spent + amount > limit then",
    },
    {
      name: "ended calls are not counted as spent",
      file: "limits-script.ts",
      find: "        spent = spent + tonumber(first)\n        budgetChanged = true",
      replace: "        budgetChanged = true",
    },
    {
      name: "a slot is freed twice",
      file: "limits-script.ts",
      find: "elseif redis.call('ZREM', running, id) == 1 then",
      replace: "elseif redis.call('ZREM', running, id) >= 0 then",
    },
    {
      name: "a frozen account gets a slot",
      file: "slots.ts",
      find: "if (caller.frozen) {",
      replace: "if (caller.frozen && check.reached) {",
    },
    {
      name: "an expired key gets a slot",
      file: "slots.ts",
      find: "    assertNotExpired(caller, clock);\n    const quota",
      replace: "    const quota",
    },
    {
      name: "a revoked key stays in the cache",
      file: "lookups.ts",
      find: "cached && cached.epoch === current &&",
      replace: "cached &&",
    },
    {
      name: "a key without the scope calls models",
      file: "slots.ts",
      find: 'const lacksScope = !caller.scopes.includes("inference");',
      replace: "const lacksScope = caller.scopes.length === 0;",
    },
  ],
};

const filesAndPayments: Area = {
  name: "files and payments",
  tests: [
    "test/unit/files",
    "test/unit/payments",
    "test/integration/files",
    "test/integration/uploads",
    "test/integration/payments",
    "test/integration/x402",
  ],
  faults: [
    {
      name: "storage is rounded down",
      file: "lifecycle.ts",
      find: "(BigInt(bytes) * nanoUsdPerGb + bytesPerGb / 2n) / bytesPerGb",
      replace: "(BigInt(bytes) * nanoUsdPerGb) / bytesPerGb",
    },
    {
      name: "an upload that was captured free becomes active",
      file: "lifecycle.ts",
      find: 'if (entry.request?.status !== "succeeded") return null;',
      replace: "",
    },
    {
      name: "parts of a wrong size are accepted",
      file: "parts.ts",
      find: "else if (part.bytes !== size)",
      replace: "else if (part.bytes < 0)",
    },
    {
      name: "a body that broke off is stored",
      file: "receiving.ts",
      find: 'else if (received < bytes) throw incomplete("it ended");',
      replace: "",
    },
    {
      name: "an upload that became active meanwhile is expired",
      file: "expiry.ts",
      find: 'status: { $in: ["pending" as const, "active" as const] }, dueAt: { $lte: now } };',
      replace: 'status: { $in: ["pending" as const, "active" as const] } };',
    },
    {
      name: "a payment pays for another request",
      file: "payment.ts",
      find: 'if (quote.requestHash !== requestHash) return "quote_for_another_request";',
      replace: "",
    },
    {
      name: "a second payment uses a quote that is claimed",
      file: "payment.ts",
      find: 'if (messageHash !== payment.messageHash) return "quote_already_used";',
      replace: "",
    },
    {
      name: "the fee payer can be drained",
      file: "payment.ts",
      find: 'if (!(await isolated.then(() => true).catch(() => false))) return "fee_payer_not_isolated";',
      replace: "await isolated.catch(() => false);",
    },
    {
      name: "a price that rose is paid with the old quote",
      file: "settle.ts",
      find: 'if (unitsOf(priceNanoUsd) > BigInt(quote.requirements.amount)) return refused("price_changed", payment);',
      replace: "",
    },
    {
      name: "a payment that landed is refused",
      file: "settle.ts",
      find: 'if (outcome.kind !== "refused") return outcome;',
      replace: "if (outcome) return outcome;",
    },
  ],
};

export const areas: readonly Area[] = [money, leases, queues, formats, limits, filesAndPayments];
