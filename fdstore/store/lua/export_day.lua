-- Counts the bytes that all trees export on a UTC day. A tree's lifetime total only grows, except for returned
-- reservations, so a repeated call counts nothing twice.
-- KEYS exports
-- ARGV life before_call with_call:number ceiling:number of_call:number
--   exports      today's exports
--   life         the tree and its creation time
--   before_call  its exports before this call
--   with_call    its exports with this call
--   ceiling      the ceiling
--   of_call      the bytes of this call: a damaged total of one tree takes nothing from the others
-- ->    ok | quota_exceeded name limit
local day = tostring(today())
if redis.call('HGET', exports, 'day') ~= day then
  redis.call('UNLINK', exports)
end
local counted = tonumber(redis.call('HGET', exports, life) or before_call)
local new = math.max(counted, with_call)
local bytes = (redis.call('HGET', exports, 'bytes') or 0) + math.min(new - counted, of_call)
if new > counted and bytes > ceiling then
  return { 'quota_exceeded', 'export_bytes_per_day', ceiling }
end
redis.call('HSET', exports, 'day', day, 'bytes', string.format('%.0f', bytes), life, string.format('%.0f', new))
redis.call('EXPIRE', exports, 172800)
return { 'ok' }
