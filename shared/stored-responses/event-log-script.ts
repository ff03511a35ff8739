/**
 * Both scripts have the keys of the log, of the sizes of the account's logs (a hash, with their sum as `all`), and of the
 * times at which they expire (a sorted set). An entry of the log has the id `0-<number of its last event>`; later ones
 * are refused by Redis. Their fields are `first` (the number of the first event) and `text`; `end`; or `over`.
 */

/**
 * Arguments: log, id, first number, text, now, time to live, limits of the log and of the account. Returns 0 if the log is
 * over a limit, and is no longer kept.
 */
export const appendScript = `
local log, sizes, expiry = KEYS[1], KEYS[2], KEYS[3]
local name, id, first, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now, ttl, most, mostInAll = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local function drop(member)
  redis.call("HINCRBY", sizes, "all", -tonumber(redis.call("HGET", sizes, member) or "0"))
  redis.call("HDEL", sizes, member)
  redis.call("ZREM", expiry, member)
end
for _, member in ipairs(redis.call("ZRANGEBYSCORE", expiry, "-inf", now, "LIMIT", 0, 20)) do drop(member) end
local last = redis.call("XREVRANGE", log, "+", "-", "COUNT", 1)[1]
if last and last[2][1] == "over" then return 0 end
local own = tonumber(redis.call("HGET", sizes, name) or "0")
local all = tonumber(redis.call("HGET", sizes, "all") or "0")
local size = #text + 64
if own + size > most or all + size > mostInAll then
  redis.call("DEL", log)
  drop(name)
  redis.call("XADD", log, "1-0", "over", "1")
  redis.call("PEXPIRE", log, ttl)
  return 0
end
if type(redis.pcall("XADD", log, id, "first", first, "text", text)) ~= "string" then return 1 end
redis.call("HINCRBY", sizes, name, size)
redis.call("HINCRBY", sizes, "all", size)
redis.call("ZADD", expiry, now + ttl, name)
for _, key in ipairs(KEYS) do
  if redis.call("PTTL", key) < ttl then redis.call("PEXPIRE", key, ttl) end
end
return 1`;

/**
 * Arguments: log, number of the last event or "", now, time to live. Marks the end of the log, once. Without a number, that
 * of the last entry counts, and a missing log stays missing.
 */
export const closeScript = `
local log, sizes, expiry = KEYS[1], KEYS[2], KEYS[3]
local name, number, now, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local last = redis.call("XREVRANGE", log, "+", "-", "COUNT", 1)[1]
if last and last[2][1] ~= "first" then return end
if number == "" then
  if not last then return end
  number = string.match(last[1], "^0%-(%d+)$")
end
redis.pcall("XADD", log, "0-" .. string.format("%d", number + 1), "end", "1")
redis.call("PEXPIRE", log, ttl)
if redis.call("HEXISTS", sizes, name) == 1 then redis.call("ZADD", expiry, now + ttl, name) end`;
