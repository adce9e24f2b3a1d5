-- Breaks a stream whose writer is gone: its lease ran out. Anybody may ask, the answer is in the keys.
-- KEYS  1 tree  2 its writers  3 content
-- ARGV  1 content id
-- ->    ok
if redis.call('HGET', KEYS[3], 'state') ~= 'open' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return { 'ok' }
end
local left = writer_left(KEYS[1], KEYS[3])
if left > 0 then
  redis.call('ZADD', KEYS[2], stamp(seconds_now() + left), ARGV[1])
else
  end_stream(KEYS[1], ARGV[1], 'broken', '', 'writer_lost')
end
return { 'ok' }
