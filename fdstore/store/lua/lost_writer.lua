-- Breaks a stream whose writer's lease has expired, and was still expired at a second check some time later. The
-- first check only records a doubt: if Redis was unreachable for longer than the lease, the writer had no time to
-- renew it. Any client may check; the state is in the keys.
-- KEYS  1 tree  2 its writers  3 content
-- ARGV  1 content id  2 within this many seconds after Redis is back, a live writer has renewed its lease
-- ->    ok
local state, leased, lease, doubt =
  unpack(redis.call('HMGET', KEYS[3], 'state', 'writer_until', 'lease', 'doubt'))
if state ~= 'open' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return { 'ok' }
end
local now, left = seconds_now(), writer_left(KEYS[1], KEYS[3])
if left == 0 and (leased or '') ~= '' and string.match(doubt or '', '^(.*) %S+$') ~= leased then
  left = math.min(ARGV[2], (tonumber(lease) or MAX_STREAM_LEASE_S) / 2)
  redis.call('HSET', KEYS[3], 'doubt', leased .. ' ' .. stamp(now + left))
end
if left > 0 then
  redis.call('ZADD', KEYS[2], stamp(now + left), ARGV[1])
else
  end_stream(KEYS[1], ARGV[1], 'broken', '', 'writer_lost')
end
return { 'ok' }
