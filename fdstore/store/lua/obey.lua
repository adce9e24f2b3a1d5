-- Lowers or raises the limits of a tree to what the operator's ceilings leave of those asked for.
-- KEYS  1 tree
-- ARGV  1 the limits as the caller saw them  2 those asked for  3 those that are to hold (JSON)
--       4 how many bytes the tree may hold because of the ceiling `bytes`, or ''  5 that ceiling  6 when that was
-- ->    ok | gone
local limits = redis.call('HGET', KEYS[1], 'limits')
if not limits then
  return { 'gone' }
end
redis.call('HDEL', KEYS[1], 'bytes_room', 'bytes_ceiling', 'bytes_room_at') -- removing first, as in write_end
if limits == ARGV[1] then -- else another client was faster
  redis.call('HSET', KEYS[1], 'limits', ARGV[3], 'limits_asked', ARGV[2])
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'bytes_room', ARGV[4], 'bytes_ceiling', ARGV[5], 'bytes_room_at', ARGV[6])
end
return { 'ok' }
