-- Reserves the bytes that a tool call writes to a file, counted once however often the call is repeated: as many as
-- it needs now, and more ahead if there is room.
-- KEYS  1 tree  2 process  3 its calls
-- ARGV  1 attempt  2 field of the call  3 bytes needed in all  4 bytes to reserve in all
--       5 'ahead'; 'exactly' to return unused bytes; 'forget' for a call that is never repeated
-- ->    ok granted before export_bytes created_at | gone | fenced why | quota_exceeded name limit
local refused = refusal(KEYS[2], ARGV[1])
if refused then
  return refused
end
local limits, used, created_at = unpack(redis.call('HMGET', KEYS[1], 'limits', 'export_bytes', 'created_at'))
local before = counted(redis.call('HGET', KEYS[3], ARGV[2]))
local limit = cjson.decode(limits).tree_export_bytes or math.huge
local others = counted(used) - before
local needed = tonumber(ARGV[3])
if needed > before and others + needed > limit then
  return { 'quota_exceeded', 'tree_export_bytes', limit }
end
local granted = math.max(needed, math.min(tonumber(ARGV[4]), limit - others))
if ARGV[5] == 'ahead' then
  granted = math.max(granted, before)
end
local all = string.format('%.0f', others + granted)
if ARGV[5] == 'forget' then
  redis.call('HDEL', KEYS[3], ARGV[2])
else
  redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f', granted))
end
-- a refused call leaves the tree as it was
if all == '0' then
  redis.call('HDEL', KEYS[1], 'export_bytes')
else
  redis.call('HSET', KEYS[1], 'export_bytes', all)
end
return { 'ok', granted, before, all, created_at }
