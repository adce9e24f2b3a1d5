-- Returns the answers to asks. An ask that no lane will answer gets an error as its answer: its lane has ended, or it
-- is queued and all lanes have ended.
-- KEYS  1 tree  2 process  3 its asks  4 their queue
-- ARGV  1 attempt  2 call  3.. numbers
-- ->    ok answer|''... | gone | fenced why
local refused = refusal(KEYS[2], ARGV[1])
if refused then
  return refused
end
local call, found, failed = ARGV[2], { 'ok' }, 0
local lanes, taken = lanes_of_call(KEYS[1], KEYS[3], call)
local last, is_live = nil, false
for _, lane in ipairs(lanes) do
  is_live = is_live or not lane.ended
  last = lane.ended and lane.state ~= 'exited' and lane or last
end
for i = 3, #ARGV do
  local field = 'answer/' .. call .. '/' .. ARGV[i]
  local text = redis.call('HGET', KEYS[3], field)
  if not text then
    local queued = redis.call('ZSCORE', KEYS[4], queued_ask(call, ARGV[i]))
    local lane = taken[ARGV[i]] or queued and not is_live and last
    if lane and lane.ended then
      text = stamped(cjson.encode({ error = lane.state .. ': ' .. lane.reason, lane = lane.id }), milliseconds_now())
      redis.call('ZREM', KEYS[4], queued_ask(call, ARGV[i]))
      redis.call('HSET', KEYS[3], field, text)
      failed = failed + 1
    end
  end
  found[#found + 1] = text or ''
end
count_asks(KEYS[3], call, 0, failed, failed)
return found
