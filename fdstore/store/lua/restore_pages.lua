-- Moves pages of a stream back that a torn log left under `lent`, and adds those written since.
-- KEYS pages lent
--   lent  its `lent` key
-- ->    ok '1'|'0': whether they were moved
local MAX_PAGES = 5000 -- the most that one step may move
local newer = redis.pcall('HLEN', pages)
if type(newer) ~= 'number' then
  newer = 0 -- the placeholder string of an append, which expires
end
local aside = redis.pcall('HLEN', lent)
if newer <= MAX_PAGES and type(aside) == 'number' and aside > 0 then
  local fields = newer > 0 and redis.call('HGETALL', pages) or {}
  for i = 1, #fields, 2000 do -- Lua's stack holds a few thousand values
    redis.call('HSET', lent, unpack(fields, i, math.min(i + 1999, #fields)))
  end
  redis.call('RENAME', lent, pages)
  return { 'ok', '1' }
end
return { 'ok', '0' }
