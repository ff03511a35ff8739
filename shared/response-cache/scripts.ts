/**
 * The scripts of flights. A flight is a hash (`leader`, `version`, `followers`, `followedAt`) that exists while its leader
 * runs; the leader renews it, and followers the time in seconds at which they last waited. Its log is a Redis Stream whose
 * entries have the id `0-<n>`, from 1. Their fields are `events` with text, and `headers` with the first of them; `end`; or
 * `failed`.
 */

/** Reads the versions, of which the first is this key, and makes those that are missing. Arguments: their life, a new one. */
const readVersion = (first: number) => `
local versions = {}
for at = ${first}, #KEYS do
  local known = redis.call("GET", KEYS[at]) or ARGV[2]
  redis.call("SET", KEYS[at], known, "PX", ARGV[1])
  versions[at - ${first - 1}] = known
end
local version = table.concat(versions, " ")`;

/**
 * Keys: flight, entry, versions. Arguments: life of a version, a new version, request id, lock time, most followers, and 1 if
 * it does not matter that there is an entry.
 */
export const beginScript = `
local flight, id, lock, most = KEYS[1], ARGV[3], ARGV[4], tonumber(ARGV[5])
if ARGV[6] == "0" and redis.call("EXISTS", KEYS[2]) == 1 then return {"stored"} end
${readVersion(3)}
local found = redis.call("HMGET", flight, "leader", "version", "followers")
if not found[1] then
  redis.call("HSET", flight, "leader", id, "version", version, "followers", 0)
  redis.call("PEXPIRE", flight, lock)
  return {"leader", version}
end
if found[2] ~= version or tonumber(found[3]) >= most then return {"alone", version} end
redis.call("HINCRBY", flight, "followers", 1)
redis.call("HSET", flight, "followedAt", redis.call("TIME")[1])
return {"follower", version, found[1]}`;

/** Keys: versions. Arguments: life of a version, a new version. Returns the versions. */
export const versionScript = `
${readVersion(1)}
return version`;

/** Keys: flight. Arguments: request id of the leader, lock time. Returns the number of followers. */
export const renewScript = `
local found = redis.call("HMGET", KEYS[1], "leader", "followers")
if found[1] ~= ARGV[1] then return 0 end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return tonumber(found[2])`;

/** Keys: flight. Arguments: request id of the leader. Followers still wait. */
export const stayScript = `
if redis.call("HGET", KEYS[1], "leader") ~= ARGV[1] then return end
redis.call("HSET", KEYS[1], "followedAt", redis.call("TIME")[1])`;

/** Keys: flight. Arguments: request id of the leader. A follower leaves. */
export const leaveScript = `
if redis.call("HGET", KEYS[1], "leader") == ARGV[1] then redis.call("HINCRBY", KEYS[1], "followers", -1) end`;

/**
 * Keys: flight. Arguments: request id of the leader, seconds after which followers that have not been heard of are gone. Ends
 * the flight unless it has followers. Returns their number.
 */
export const abandonScript = `
local found = redis.call("HMGET", KEYS[1], "leader", "followers", "followedAt")
if found[1] ~= ARGV[1] then return 0 end
local followers = tonumber(found[2])
if followers > 0 and redis.call("TIME")[1] - found[3] <= tonumber(ARGV[2]) then return followers end
redis.call("DEL", KEYS[1])
return 0`;

/**
 * Keys: flight, log, entry, versions. Arguments: request id of the leader, last entry of the log, its id, life of the log,
 * version, life of the entry, the entry. Stores the entry if the versions are still those, and then returns 1.
 */
export const endScript = `
local versions = {}
for at = 4, #KEYS do versions[at - 3] = redis.call("GET", KEYS[at]) or "" end
local isCurrent = #ARGV > 4 and table.concat(versions, " ") == ARGV[5]
if isCurrent then redis.call("SET", KEYS[3], ARGV[7], "PX", ARGV[6]) end
local result = isCurrent and 1 or 0
if redis.call("HGET", KEYS[1], "leader") ~= ARGV[1] then return result end
redis.call("DEL", KEYS[1])
redis.pcall("XADD", KEYS[2], ARGV[3], ARGV[2], "1")
redis.call("PEXPIRE", KEYS[2], ARGV[4])
return result`;
