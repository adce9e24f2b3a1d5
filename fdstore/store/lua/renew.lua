-- Renews a lease; optionally records what blocks the process, or the trace of this attempt.
-- KEYS tree process
-- ARGV process_id attempt lease_s blocked_by traceparent
--   lease_s      lease in seconds
--   blocked_by   what blocks it, '' to clear, '*' to leave it unchanged
--   traceparent  traceparent of this attempt, '' to leave the last
-- ->    ok | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local until_ = stamp(seconds_now() + lease_s)
redis.call('HDEL', process, 'lease_until') -- removing first, as in write_end
redis.call('HSET', process, 'lease_until', until_)
if traceparent ~= '' then
  redis.call('HSET', process, 'traced', traceparent)
end
if blocked_by == '' then
  redis.call('HDEL', process, 'trouble')
elseif blocked_by ~= '*' then
  redis.call('HSET', process, 'trouble', blocked_by)
end
redis.call('ZADD', tree .. ':leases', until_, process_id)
return { 'ok' }
