-- Cancels a process with all below it. Whoever runs one of them is fenced from then on.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 reason
-- ->    ok state parent-to-wake|'' cancelled... | gone
local tree, id = KEYS[1], ARGV[1]
local state, parent = unpack(redis.call('HMGET', KEYS[2], 'state', 'parent'))
if not state then
  return { 'gone' }
end
local now = stamp(seconds_now())
local cancelled = {}
local members = { id }
local at = 1
while members[at] do
  local member = members[at]
  local record = process_record(tree, member)
  local its_state, next_child = unpack(redis.call('HMGET', record, 'state', 'next_child'))
  if not ENDED[its_state] then
    redis.call('HDEL', record, 'lease_until') -- removing first, as in write_end
    -- it begins by removing, which a full Redis allows: a kill makes room
    write_end(tree, member, 'cancelled', now, 'cancelled')
    redis.call('HSET', record, 'reason', ARGV[2])
    cancelled[#cancelled + 1] = member
  end
  for number = 1, next_child - 1 do
    members[#members + 1] = member .. '.' .. number
  end
  at = at + 1
end
local wake = ''
if parent and #cancelled > 0 then
  wake = child_ended(tree, parent, id, now)
end
return { 'ok', redis.call('HGET', KEYS[2], 'state'), wake, unpack(cancelled) }
