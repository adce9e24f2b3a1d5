-- Reserves the bytes that a tool call writes to a file, counted once however often the call is repeated: as many as
-- it needs now, and more ahead if there is room.
-- KEYS tree process calls
-- ARGV attempt call needed:number wanted:number how
--   call    field of the call
--   needed  bytes needed in all
--   wanted  bytes to reserve in all
--   how     'ahead' reserves; 'exactly' returns unused bytes; 'forget' also deletes the field of the call
-- ->    ok granted before export_bytes created_at | gone | fenced why | quota_exceeded name limit
local refused = refusal(process, attempt)
if refused then
  return refused
end
local limits, used, created_at = unpack(redis.call('HMGET', tree, 'limits', 'export_bytes', 'created_at'))
local before = counted(redis.call('HGET', calls, call))
local limit = cjson.decode(limits).tree_export_bytes or math.huge
local others = counted(used) - before
if needed > before and others + needed > limit then
  return { 'quota_exceeded', 'tree_export_bytes', limit }
end
local granted = math.max(needed, math.min(wanted, limit - others))
if how == 'ahead' then
  granted = math.max(granted, before)
end
local all = string.format('%.0f', others + granted)
if how == 'forget' then
  redis.call('HDEL', calls, call)
else
  redis.call('HSET', calls, call, string.format('%.0f', granted))
end
-- a refused call leaves the tree as it was
if all == '0' then
  redis.call('HDEL', tree, 'export_bytes')
else
  redis.call('HSET', tree, 'export_bytes', all)
end
return { 'ok', granted, before, all, created_at }
