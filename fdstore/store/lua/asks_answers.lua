-- Returns the answers to asks. An ask that no lane will answer gets an error as its answer: its lane has ended, or it
-- is queued and all lanes have ended.
-- KEYS tree process asks queue
-- ARGV attempt call numbers...
--   queue  their queue
-- ->    ok answer|''... | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local found, failed = { 'ok' }, 0
local lanes, taken = lanes_of_call(tree, asks, call)
local last, is_live = nil, false
for _, lane in ipairs(lanes) do
  is_live = is_live or not lane.ended
  last = lane.ended and lane.state ~= 'exited' and lane or last
end
for i = numbers_from, #ARGV do
  local field = 'answer/' .. call .. '/' .. ARGV[i]
  local text = redis.call('HGET', asks, field)
  if not text then
    local queued = redis.call('ZSCORE', queue, queued_ask(call, ARGV[i]))
    local lane = taken[ARGV[i]] or queued and not is_live and last
    if lane and lane.ended then
      text = stamped(cjson.encode({ error = lane.state .. ': ' .. lane.reason, lane = lane.id }), milliseconds_now())
      redis.call('ZREM', queue, queued_ask(call, ARGV[i]))
      redis.call('HSET', asks, field, text)
      failed = failed + 1
    end
  end
  found[#found + 1] = text or ''
end
count_asks(asks, call, 0, failed, failed)
return found
