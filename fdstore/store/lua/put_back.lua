-- Moves pages of a stream back that a torn log left under `lent`, and adds those written since.
-- KEYS  1 its pages  2 its `lent` key
-- ->    ok '1'|'0': whether they were moved
local MAX_PAGES = 5000 -- the most that one step may move
local newer = redis.pcall('HLEN', KEYS[1])
if type(newer) ~= 'number' then
  newer = 0 -- the placeholder string of an append, which expires
end
local aside = redis.pcall('HLEN', KEYS[2])
if newer <= MAX_PAGES and type(aside) == 'number' and aside > 0 then
  local fields = newer > 0 and redis.call('HGETALL', KEYS[1]) or {}
  for i = 1, #fields, 2000 do -- Lua's stack holds a few thousand values
    redis.call('HSET', KEYS[2], unpack(fields, i, math.min(i + 1999, #fields)))
  end
  redis.call('RENAME', KEYS[2], KEYS[1])
  return { 'ok', '1' }
end
return { 'ok', '0' }
