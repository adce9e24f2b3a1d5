-- Puts the pages of a stream back that a torn log left aside, with those that were written since.
-- KEYS  1 its pages  2 where they are lent
-- ->    ok '1'|'0': whether they are back
local MAX_PAGES = 5000 -- as many as one step may move
local newer = redis.pcall('HLEN', KEYS[1])
if type(newer) ~= 'number' then
  newer = 0 -- what keeps a piece out, which goes by itself
end
local aside = redis.pcall('HLEN', KEYS[2])
if newer <= MAX_PAGES and type(aside) == 'number' and aside > 0 then
  local fields = newer > 0 and redis.call('HGETALL', KEYS[1]) or {}
  for i = 1, #fields, 2000 do -- Lua's stack holds some thousands
    redis.call('HSET', KEYS[2], unpack(fields, i, math.min(i + 1999, #fields)))
  end
  redis.call('RENAME', KEYS[2], KEYS[1])
  return { 'ok', '1' }
end
return { 'ok', '0' }
