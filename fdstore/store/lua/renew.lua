-- Renews a lease; optionally records what blocks the process, or the trace of this attempt.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 attempt  3 lease in seconds  4 what blocks it, '' to clear; absent or '*': unchanged
--       5 traceparent of this attempt; absent: unchanged
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
local until_ = stamp(seconds_now() + ARGV[3])
redis.call('HDEL', KEYS[2], 'lease_until') -- removing first, as in write_end
redis.call('HSET', KEYS[2], 'lease_until', until_)
if ARGV[5] then
  redis.call('HSET', KEYS[2], 'traced', ARGV[5])
end
if ARGV[4] == '' then
  redis.call('HDEL', KEYS[2], 'trouble')
elseif ARGV[4] and ARGV[4] ~= '*' then
  redis.call('HSET', KEYS[2], 'trouble', ARGV[4])
end
redis.call('ZADD', KEYS[1] .. ':leases', until_, ARGV[1])
return { 'ok' }
