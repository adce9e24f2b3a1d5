-- Cancels a process and its descendants, and so fences their workers. Damaged records are skipped and reported;
-- a process is cancelled if its record can be written at all.
-- KEYS tree process
-- ARGV process_id reason
-- ->    ok state ancestors-to-wake how-many cancelled... damage... | gone
local id = process_id
local now = stamp(seconds_now())
local cancelled, ended = {}, {}

local function cancel(member)
  local record = process_record(tree, member)
  local state = redis.call('HGET', record, 'state')
  ended[member] = true -- also a lane that ended with its parent just now
  if redis.call('EXISTS', record) == 0 or ENDED[state] then
    return
  end
  -- write_end begins with a removal, which a full Redis allows: a kill frees memory
  write_end(tree, member, 'cancelled', now, CANCELLED, '', reason, '', '')
  cancelled[#cancelled + 1] = member
end

-- use the tree's list of processes, not numbers up to `next_child`, which may be damaged and huge
local members = redis.pcall('ZRANGE', tree .. ':processes', 0, -1)
if members.err then
  damage[#damage + 1] = 'the processes of tree ' .. tree .. ': ' .. members.err
  members = {}
end
local found = redis.call('EXISTS', process) == 1
if found then
  despite_damage('process', id, cancel, id)
end
for _, member in ipairs(members) do
  if string.sub(member, 1, #id + 1) == id .. '.' then
    found = true
    if string.match(member, '^[%w_%.-]+$') then
      despite_damage('process', member, cancel, member)
    else
      damage[#damage + 1] = 'process ' .. member .. ': not a process id'
    end
  end
end
if not found then
  return { 'gone' }
end
local wake = notify_ancestors(tree, id, ended, now)
local state = redis.pcall('HMGET', process, 'state')[1]
local reply = { 'ok', state or 'unreadable', wake, #cancelled }
for _, member in ipairs(cancelled) do
  reply[#reply + 1] = member
end
for i = 1, math.min(#damage, 100) do
  reply[#reply + 1] = damage[i]
end
return reply
