-- Records the use of a tree.
-- KEYS tree
-- ->    ok now | gone
if redis.call('EXISTS', tree) == 0 then
  return { 'gone' }
end
local now = stamp(seconds_now())
redis.call('HSET', tree, 'used_at', now)
return { 'ok', now }
