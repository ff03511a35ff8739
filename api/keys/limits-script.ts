/**
 * Arguments: the limits; for a key with a budget also its `limit`, its period, the start of the period and the maximum age
 * of its counters in ms; then the operations. Each operation has its kind, the id of its call and two values: `enter` the
 * time to live and the tokens, `take` the tokens and the maximum cost of the call, `free` the corrections to requests and
 * tokens, `end` the cost. Each operation has its own answer.
 *
 * Buckets hold what is used, not what remains. So nothing is used of a missing bucket, a changed limit applies at once, and
 * the bucket may expire once nothing is used. The time is that of the Redis server.
 *
 * enter: all limits of a call are checked before any is counted. Its tokens are counted too if there are as many, otherwise
 * later; but a bucket in debt refuses. Slots of calls past their deadline are free.
 * free: a slot is freed once, because only its removal applies the correction. Usage beyond the tokens taken may put the
 * bucket in debt, by its capacity at most.
 *
 * A budget is one hash, so that no part of it can be lost alone: the cost of ended calls of the period (`spent`), and the
 * maximum cost of each open call (`o:<id>`, their sum in `open`). It is valid only if it is of this period or a later one,
 * was counted by this process of Redis (`run`), whose clock thus gave `at`, and after the caller's connection to Redis was
 * made, so that anything lost in a failover is counted again.
 * take: a call may already be open, because a count found its hold, perhaps along with holds of other calls that have not
 * taken yet. Then it changes nothing, and is refused if all of them together exceed the limit.
 * end: counts once, because only the removal of the call applies it.
 * count, counted: nothing is taken between them. The costs of calls that end in between (`e:<id>`) are recorded, because the
 * data read from MongoDB may still have those calls as open.
 */
export const source = `
local buckets, running, budget = KEYS[1], KEYS[2], KEYS[3]
local requestsPerMinute, tokensPerMinute, slots = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stored = redis.call('HMGET', buckets, 'requests', 'tokens', 'at')
local minutes = math.max(0, now - (tonumber(stored[3]) or now)) / 60000
local requests = math.max(0, (tonumber(stored[1]) or 0) - minutes * requestsPerMinute)
local tokens = math.max(0, (tonumber(stored[2]) or 0) - minutes * tokensPerMinute)
local operations, budgetChanged = 4, false
local limit, run, spent, open, counting, counted
if budget then
  operations = 8
  limit = tonumber(ARGV[4])
  run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local state = redis.call('HMGET', budget, 'period', 'from', 'spent', 'open', 'at', 'until', 'run')
  spent, open = tonumber(state[3]) or 0, tonumber(state[4]) or 0
  counting = (tonumber(state[6]) or 0) > now
  counted = not counting and state[1] == ARGV[5] and tonumber(state[2]) >= tonumber(ARGV[6])
    and state[7] == run and tonumber(state[5]) >= now - tonumber(ARGV[7])
end
local taken
local answers, changed = {}, false
for i = operations, #ARGV, 4 do
  local kind, id, first, second = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local verdict, wait
  local inFlight, takenTokens = 0, 0
  if kind == 'enter' then
    if not taken then
      redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
      taken = redis.call('ZCARD', running)
    end
    verdict, wait, inFlight = 'taken', 0, taken
    if not redis.call('ZSCORE', running, id) then
      if taken >= slots then verdict, wait = 'concurrent', 1000 end
      local forRequest = (requests + 1 - requestsPerMinute) / requestsPerMinute * 60000
      if forRequest > wait then verdict, wait = 'requests', forRequest end
      local forTokens = (tokens - tokensPerMinute) / tokensPerMinute * 60000
      if forTokens > wait then verdict, wait = 'tokens', forTokens end
      if verdict == 'taken' then
        local deadline = math.ceil(now + tonumber(first))
        redis.call('ZADD', running, deadline, id)
        if redis.call('PEXPIRETIME', running) < deadline then redis.call('PEXPIREAT', running, deadline) end
        requests = requests + 1
        taken = taken + 1
        if tokens + tonumber(second) <= tokensPerMinute then
          takenTokens = tonumber(second)
          tokens = tokens + takenTokens
        end
        changed = true
      end
    end
  elseif kind == 'take' then
    verdict, wait = 'taken', (tokens + tonumber(first) - tokensPerMinute) / tokensPerMinute * 60000
    if wait > 0 then
      verdict = 'tokens'
    elseif budget then
      local amount = tonumber(second)
      if not counted then
        verdict = 'uncounted'
      elseif redis.call('HEXISTS', budget, 'o:' .. id) == 1 then
        if spent + open > limit then verdict = 'budget' end
      else
        if spent + open + amount > limit then
          verdict = 'budget'
        else
          redis.call('HSET', budget, 'o:' .. id, second)
          open = open + amount
          budgetChanged = true
        end
      end
    end
    if verdict == 'taken' then
      tokens = tokens + tonumber(first)
      changed = true
    end
  elseif kind == 'end' then
    verdict, wait = 'taken', 0
    if budget then
      if counting then redis.call('HSET', budget, 'e:' .. id, first) end
      local amount = redis.call('HGET', budget, 'o:' .. id)
      if amount then
        redis.call('HDEL', budget, 'o:' .. id)
        open = open - tonumber(amount)
        spent = spent + tonumber(first)
        budgetChanged = true
      end
    end
  elseif kind == 'read' then
    verdict, wait = counted and 'taken' or 'uncounted', 0
  elseif kind == 'count' then
    verdict, wait = counting and 'counting' or 'taken', 0
    if not counting and not counted then
      for _, field in ipairs(redis.call('HKEYS', budget)) do
        if string.sub(field, 1, 2) == 'e:' then redis.call('HDEL', budget, field) end
      end
      redis.call('HSET', budget, 'token', id, 'until', now + tonumber(first))
      redis.call('PEXPIRE', budget, 172800000)
      counting = true
      verdict = 'uncounted'
    end
  elseif kind == 'counted' then
    verdict, wait = 'uncounted', 0
    if redis.call('HGET', budget, 'token') == id then
      local fields, ended = redis.call('HGETALL', budget), {}
      for at = 1, #fields, 2 do
        if string.sub(fields[at], 1, 2) == 'e:' then ended[string.sub(fields[at], 3)] = tonumber(fields[at + 1]) end
      end
      redis.call('DEL', budget)
      spent, open = tonumber(first), 0
      local from, calls = string.match(second, '^(%d+);(.*)$')
      for call, amount in string.gmatch(calls, '([^=,]+)=(%d+)') do
        if ended[call] then
          spent = spent + ended[call]
        else
          redis.call('HSET', budget, 'o:' .. call, amount)
          open = open + tonumber(amount)
        end
      end
      redis.call('HSET', budget, 'period', ARGV[5], 'from', from, 'at', now, 'run', run)
      counting, counted, budgetChanged, verdict = false, true, true, 'taken'
    end
  elseif redis.call('ZREM', running, id) == 1 then
    if taken then taken = taken - 1 end
    requests = math.max(0, requests + tonumber(first))
    tokens = math.min(2 * tokensPerMinute, math.max(0, tokens + tonumber(second)))
    changed = true
  end
  local answer = verdict and {verdict, tostring(wait), tostring(requests), tostring(tokens), inFlight, takenTokens} or false
  if answer and budget then
    answer[7], answer[8] = string.format('%.0f', spent), string.format('%.0f', open)
  end
  answers[(i - operations) / 4 + 1] = answer
end
if changed then
  redis.call('HSET', buckets, 'requests', requests, 'tokens', tokens, 'at', now)
  redis.call('PEXPIRE', buckets, math.ceil(math.max(requests / requestsPerMinute, tokens / tokensPerMinute) * 60000) + 1)
end
if budgetChanged then
  redis.call('HSET', budget, 'spent', string.format('%.0f', spent), 'open', string.format('%.0f', open))
  redis.call('PEXPIRE', budget, 172800000)
end
return answers
`;
