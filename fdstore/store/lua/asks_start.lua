-- Queues asks that are stored and neither queued, taken nor answered, and creates the lanes that they lack. A repeat
-- changes nothing.
-- KEYS tree parent_record asks queue
-- ARGV attempt parent call most_at_once:number lane_width seen_child traceparent price server error_words failures rest...
--   queue          their queue
--   most_at_once   how many to ask at once
--   lane_width     how many of them one lane asks
--   seen_child     the highest child number that the client has seen
--   traceparent    traceparent of the process, '' for none
--   price          price of the model (JSON, '' for none)
--   server         the server that is asked (JSON)
--   error_words    words of the errors of those that fail at once, for search
--   failures       how many asks fail at once
--   rest           of each that fails: number, answer (JSON); then the numbers of all others without an answer
-- ->    ok lane... | unsafe policy | gone | fenced why
local refused = refusal(parent_record, attempt) or unsafe(tree)
if refused then
  return refused
end
local lanes, taken = lanes_of_call(tree, asks, call)
local new, failed, pending = 0, 0, 0
local is_free = function(number)
  return not taken[number] and redis.call('HEXISTS', asks, 'ask/' .. call .. '/' .. number) == 1
    and redis.call('HEXISTS', asks, 'answer/' .. call .. '/' .. number) == 0
    and not redis.call('ZSCORE', queue, queued_ask(call, number))
end
local first = rest_from + 2 * failures
add_words(tree, 'error', parent, error_words, true)
for i = rest_from, first - 1, 2 do
  if is_free(ARGV[i]) then
    redis.call('HSET', asks, 'answer/' .. call .. '/' .. ARGV[i], stamped(ARGV[i + 1], milliseconds_now()))
    new, failed = new + 1, failed + 1
  end
end
for i = first, #ARGV do
  pending = pending + 1
  if is_free(ARGV[i]) then
    redis.call('ZADD', queue, 0, queued_ask(call, ARGV[i]))
    new = new + 1
  end
end
count_asks(asks, call, new, failed, failed)

local live = {}
for _, lane in ipairs(lanes) do
  live[#live + 1] = not lane.ended and lane.id or nil
end
local at_once = math.min(pending, most_at_once)
local wanted = math.ceil(at_once / lane_width)
local now = stamp(seconds_now())
for i = #live + 1, wanted do
  local id = parent .. '.' .. next_number(parent_record, 'next_child', seen_child)
  local process = process_record(tree, id)
  local width = math.floor(at_once / wanted) + (i <= at_once % wanted and 1 or 0)
  clear(process)
  redis.call('RPUSH', process .. ':journal', cjson.encode({ kind = 'asks', call = call, width = width,
    server = cjson.decode(server) }))
  live[#live + 1] = id
  lanes[#lanes + 1] = { id = id }
  local ids = {}
  for _, lane in ipairs(lanes) do
    ids[#ids + 1] = lane.id
  end
  redis.call('HSET', asks, 'lanes/' .. call, table.concat(ids, ' '))
  local others = redis.call('HGET', asks, 'lanes')
  redis.call('HSET', asks, 'lanes', others and others .. ' ' .. id or id)
  redis.call('ZADD', tree .. ':processes', now, id)
  redis.call('ZADD', tree .. ':leases', now, id)
  redis.call('HSET', tree, 'used_at', now)
  redis.call('HSET', process, 'parent', parent, 'state', 'ready', 'attempt', 0, 'losses', 0, 'kind', 'asks',
    'call', call, 'program', '', 'bundle', '', 'input', '', 'outputs', '', 'first_fd', 1, 'next_fd', 1, 'next_child', 1,
    'started_at', now, 'ready_at', now, unpack(set_only({ 'traceparent', traceparent, 'price', price })))
end
return { 'ok', unpack(live) }
