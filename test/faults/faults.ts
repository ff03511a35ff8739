import { type Area, answerAreas } from "./answer-faults.ts";

export const areas: Readonly<Record<string, Area>> = {
  ...answerAreas,
  money: {
    tests: [
      "test/unit/money",
      "test/unit/catalog-bound",
      "test/unit/catalog-prices",
      "test/integration/money-",
      "test/integration/billing",
      "test/integration/buyback-charges",
      "test/integration/payments-buyback",
      "test/integration/undelivered",
    ],
    others: ["test/chaos/api-killed"],
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
    tests: ["test/integration/leases", "test/integration/money-sweep"],
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
  "provider keys": {
    tests: ["test/unit/provider-key", "test/integration/provider-keys", "test/integration/webhook-account-events"],
    faults: {
      "a note about an earlier credential counts": [
        "{ _id: id, account, version, ...isNews } as Filter",
        "{ _id: id, account, ...isNews } as Filter",
      ],
      "a rotation overwrites another": [
        "findOneAndUpdate({ _id: id, account, version }, update",
        "findOneAndUpdate({ _id: id, account }, update",
      ],
      "a credential opens as a later one": ["`${id}:${upstream}:${version}`", "`${id}:${upstream}`"],
      "a refused credential is stored": [
        'if (state?.status === "invalid") throw',
        "if (state?.status === undefined) throw",
      ],
      "a message quotes a part of the credential": ["const shortestQuote = 8;", "const shortestQuote = 30;"],
      "an old value overwrites a new credential": [
        "keys.updateOne({ _id, account, sealed }, { $set: changed })",
        "keys.updateOne({ _id, account }, { $set: changed })",
      ],
      "each note of an invalid credential is an event": ['{ $eq: ["$status", status] }', '{ $eq: ["$status", ""] }'],
    },
  },
  webhooks: {
    tests: [
      "test/unit/secrets",
      "test/unit/receiver-addresses",
      "test/unit/webhooks",
      "test/integration/safe-post",
      "test/integration/webhook-account-events",
      "test/integration/webhook-attempts",
      "test/integration/webhook-isolation",
      "test/integration/webhook-retries",
    ],
    faults: {
      "a sealed value opens for another account": [
        "Buffer.from(JSON.stringify([account, id]))",
        "Buffer.from(JSON.stringify([id]))",
      ],
      "one public address of a name is enough": [
        "addresses.every((ip) => isPublicIp(ip) || isInside(ip))",
        "addresses.some((ip) => isPublicIp(ip) || isInside(ip))",
      ],
      "an answer is read to its end": ["if (bytes >= limitBytes) end.abort(", "if (bytes < 0) end.abort("],
      "the signature leaves out the time": ["`${id}.${timestamp}.${body}`", "`${id}.${body}`"],
      "a 410 is a failure like others": ['if (answer?.status === 410) return { kind: "gone" };', ""],
      "failing receivers may take all attempts": ["&& (!isFailing || failing < maxFailing)", ""],
      "a host has no limit": ["(ofHost.get(host) ?? 0) < maxPerHost && ", ""],
      "a failing receiver gets ten attempts at once": [
        "width = succeeded ? maxPerReceiver : 1;",
        "width = maxPerReceiver;",
      ],
      "a receiver gets as many attempts as it has deliveries": [
        "width = succeeded ? maxPerReceiver : 1;",
        "width = succeeded ? 100 : 1;",
      ],
    },
  },
  events: {
    tests: [
      "test/integration/webhook-routes",
      "test/integration/webhook-events",
      "test/integration/webhook-account-events",
    ],
    others: ["test/chaos/webhook-events"],
    faults: {
      "the end of a job says nothing of its event": ["          eventDueAt: new Date(now + eventDelayMs),\n", ""],
      "maintenance records no events of jobs": ["await detachedCalls.recordDueEvents();", ""],
      "an event is noted before it is recorded": [
        "const status = view.background ? responseStatusOf(stored) : stored.status;",
        'const status = view.background ? responseStatusOf(stored) : stored.status;\n    await collection.updateOne({ account, _id: requestId }, { $unset: { eventDueAt: "" } });',
      ],
      "an event that is derived twice has two ids": [
        "hashedBase62(hashLength, account, objectId, type, occurrence)",
        "hashedBase62(hashLength, account, objectId, type, occurrence, String(Math.random()))",
      ],
      "a URL that is also an endpoint gets an event twice": ["isUrl && !isCovered ?", "isUrl ?"],
      "a job is deleted before its event is recorded": [
        "if (job) await events.record(job);\n      const isOver = { status: { $nin: [...openStatuses] }, eventDueAt: { $exists: false } };",
        "const isOver = { status: { $nin: [...openStatuses] } };",
      ],
      "a replaced secret signs forever": [
        ".filter(({ until }) => until === undefined || until.getTime() > clock.now())",
        "",
      ],
      "an endpoint of another account is found": [
        "endpoints.findOne({ _id, account, ...hasUrl } as Filter)",
        "endpoints.findOne({ _id, ...hasUrl } as Filter)",
      ],
      "a balance alert ends before its event is recorded": [
        '{ $and: [{ $not: [isBelow] }, { $eq: ["$alertSince", "$alertRecorded"] }] }',
        "{ $not: [isBelow] }",
      ],
      "periods of a budget that were not looked at are left out": ["if (from <= since) break;", "break;"],
      "a key that lives shorter than the notice is announced": [
        '{ $lte: ["$createdAt", { $subtract: ["$expiresAt", days * dayMs] }] },',
        "",
      ],
    },
  },
  "queues and replies": {
    tests: [
      "test/unit/frames",
      "test/integration/replies",
      "test/integration/queues",
      "test/integration/answers",
      "test/integration/call-groups",
      "test/integration/errors-limits",
      "test/integration/frames",
      "test/integration/undelivered",
      "test/integration/idempotency",
      "test/integration/disconnected-callers",
    ],
    others: ["test/timing/stream-bursts", "test/chaos/worker-killed", "test/chaos/api-killed"],
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
        "if (call.attempt !== undefined && !(isStored(call) && seq === 0)) return false;",
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
        'if (stream || idempotencyKeyId !== undefined || detached || held === "0") return undefined;',
        'if (!stream || idempotencyKeyId !== undefined || detached || held === "0") return undefined;',
      ],
      "a call whose time is over is run": ['if (clock.now() >= payload.deadlineAt) call.abort("deadline");', ""],
      "the running work of a caller who disconnected from JSON is aborted": [
        'if (!hasBegun || payload.held === "0") call.abort("disconnected");',
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
  "files for batches": {
    tests: ["test/integration/batch-files"],
    faults: {
      "concurrent uploads exceed the quota": [
        "await usage.model.updateOne({ _id: account }, { $inc: { reservations: 1 } }, { session });",
        "",
      ],
      "a reader that goes on gets the parts before its offset": ["skipped -= bytes;", ""],
      "a file that was expired while it was stored is announced": [
        'throw noCapacity("Storing the file took too long.");',
        "{}",
      ],
      "an expired file is forgotten at once": ["keepMs: knownMs });", "keepMs: 0 });"],
    },
  },
  "lines of batches": {
    tests: ["test/integration/batch-lines", "test/integration/batches"],
    faults: {
      "an error that comes late ends a line that is tried again": [
        "const isOpen = { retryAt: { $exists: false }, answer:",
        "const isOpen = { answer:",
      ],
      "an answer that is not the result of its line is charged": [
        'throw noCapacity("The line was ended elsewhere; nothing was charged.");',
        "return answer;",
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
