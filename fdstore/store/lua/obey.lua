-- Sets the limits of a tree to the requested ones, lowered to the operator's ceilings.
-- KEYS  1 tree
-- ARGV  1 the limits that the caller read  2 the requested ones  3 the new effective ones (JSON)
--       4 how many bytes the tree may hold under the ceiling `bytes`, or ''  5 that ceiling  6 when it was computed
-- ->    ok | gone
local limits = redis.call('HGET', KEYS[1], 'limits')
if not limits then
  return { 'gone' }
end
redis.call('HDEL', KEYS[1], 'bytes_room', 'bytes_ceiling', 'bytes_room_at') -- removing first, as in write_end
if limits == ARGV[1] then -- otherwise another client has changed them
  redis.call('HSET', KEYS[1], 'limits', ARGV[3], 'limits_asked', ARGV[2])
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'bytes_room', ARGV[4], 'bytes_ceiling', ARGV[5], 'bytes_room_at', ARGV[6])
end
return { 'ok' }
