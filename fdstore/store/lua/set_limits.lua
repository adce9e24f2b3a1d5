-- Sets the limits of a tree to the requested ones, lowered to the operator's ceilings.
-- KEYS tree
-- ARGV limits_before asked effective bytes_room bytes_ceiling computed_at
--   limits_before  the limits that the caller read
--   asked          the requested ones
--   effective      the new effective ones (JSON)
--   bytes_room     how many bytes the tree may hold under the ceiling `bytes`, or ''
--   bytes_ceiling  that ceiling
--   computed_at    when it was computed
-- ->    ok | gone
local limits = redis.call('HGET', tree, 'limits')
if not limits then
  return { 'gone' }
end
redis.call('HDEL', tree, 'bytes_room', 'bytes_ceiling', 'bytes_room_at') -- removing first, as in write_end
if limits == limits_before then -- otherwise another client has changed them
  redis.call('HSET', tree, 'limits', effective, 'limits_asked', asked)
end
if bytes_room ~= '' then
  redis.call('HSET', tree, 'bytes_room', bytes_room, 'bytes_ceiling', bytes_ceiling, 'bytes_room_at', computed_at)
end
return { 'ok' }
