-- Breaks a stream whose writer's lease has expired, and was still expired at a second check some time later. The
-- first check only records a doubt: if Redis was unreachable for longer than the lease, the writer had no time to
-- renew it. Any client may check; the state is in the keys.
-- KEYS tree writers content
-- ARGV content_id renews_s
--   renews_s  within this many seconds after Redis is back, a live writer has renewed its lease
-- ->    ok
local state, leased, lease, doubt =
  unpack(redis.call('HMGET', content, 'state', 'writer_until', 'lease', 'doubt'))
if state ~= 'open' then
  redis.call('ZREM', writers, content_id)
  return { 'ok' }
end
local now, left = seconds_now(), writer_left(tree, content)
if left == 0 and (leased or '') ~= '' and string.match(doubt or '', '^(.*) %S+$') ~= leased then
  left = math.min(renews_s, (tonumber(lease) or MAX_STREAM_LEASE_S) / 2)
  redis.call('HSET', content, 'doubt', leased .. ' ' .. stamp(now + left))
end
if left > 0 then
  redis.call('ZADD', writers, stamp(now + left), content_id)
else
  end_stream(tree, content_id, 'broken', '', WRITER_LOST)
end
return { 'ok' }
