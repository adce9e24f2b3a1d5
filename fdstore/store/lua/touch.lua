-- Records the use of a tree.
-- KEYS  1 tree
-- ->    ok now | gone
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
local now = stamp(seconds_now())
redis.call('HSET', KEYS[1], 'used_at', now)
return { 'ok', now }
