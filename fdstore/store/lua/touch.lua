-- Notes that a tree is in use.
-- KEYS  1 tree
-- ->    ok | gone
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
redis.call('HSET', KEYS[1], 'used_at', stamp(seconds_now()))
return { 'ok' }
