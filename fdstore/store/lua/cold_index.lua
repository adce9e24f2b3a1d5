-- Replaces fields of the index of a cold content, by packed ones or by those of before. Readers know either form of each
-- field, so this needs no common step with the rest of a move, and no key beside the index, which an expiry could end.
-- KEYS content
-- ARGV where fields...
--   where   its object: a content that is not there any more keeps its index
--   fields  group, value, ...
-- ->    ok '1'|'0': whether they are stored
local tier, found = unpack(redis.call('HMGET', content, 'tier', 'where'))
if tier ~= 'cold' or found ~= where or redis.call('EXISTS', content .. ':index') == 0 then
  return { 'ok', '0' }
end
redis.call('HDEL', content .. ':index', '') -- removing first, as in write_end, if nothing
redis.call('HSET', content .. ':index', unpack(ARGV, fields_from))
return { 'ok', '1' }
