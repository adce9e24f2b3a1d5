-- Counts the bytes that all trees export on a UTC day. A tree's lifetime total only grows, except for returned
-- reservations, so a repeated call counts nothing twice.
-- KEYS  1 today's exports
-- ARGV  1 the tree and its creation time  2 its exports before this call  3 with it  4 the ceiling
--       5 the bytes of this call: a damaged total of one tree takes nothing from the others
-- ->    ok | quota_exceeded name limit
local day = tostring(today())
if redis.call('HGET', KEYS[1], 'day') ~= day then
  redis.call('UNLINK', KEYS[1])
end
local counted = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or ARGV[2])
local new = math.max(counted, tonumber(ARGV[3]))
local bytes = (redis.call('HGET', KEYS[1], 'bytes') or 0) + math.min(new - counted, tonumber(ARGV[5]))
if new > counted and bytes > tonumber(ARGV[4]) then
  return { 'quota_exceeded', 'export_bytes_per_day', tonumber(ARGV[4]) }
end
redis.call('HSET', KEYS[1], 'day', day, 'bytes', string.format('%.0f', bytes), ARGV[1], string.format('%.0f', new))
redis.call('EXPIRE', KEYS[1], 172800)
return { 'ok' }
