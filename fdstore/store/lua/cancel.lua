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
for _, member in ipairs(redis.call('ZRANGE', tree .. ':processes', 0, -1)) do
  if member == id or string.sub(member, 1, #id + 1) == id .. '.' then
    local record = process_record(tree, member)
    if not ENDED[redis.call('HGET', record, 'state')] then
      redis.call('HDEL', record, 'lease_until') -- removing first, as in write_end
      -- it begins by removing, which a full Redis allows: a kill makes room
      write_end(tree, member, 'cancelled', now, 'cancelled')
      redis.call('HSET', record, 'reason', ARGV[2])
      cancelled[#cancelled + 1] = member
    end
  end
end
local wake = ''
if parent and #cancelled > 0 then
  wake = child_ended(tree, parent, id, now)
end
return { 'ok', redis.call('HGET', KEYS[2], 'state'), wake, unpack(cancelled) }
