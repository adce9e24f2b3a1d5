-- Queues asks that are stored and neither queued, taken nor answered, and creates the lanes that they lack. A repeat
-- changes nothing.
-- KEYS  1 tree  2 process  3 its asks  4 their queue
-- ARGV  1 attempt  2 process id  3 call  4 how many to ask at once  5 how many of them one lane asks
--       6 the highest child number that the client has seen  7 traceparent of the process, '' for none
--       8 price of the model (JSON, '' for none)  9 how many asks fail at once, then for each: number, answer (JSON)
--       then the numbers of all others without an answer
-- ->    ok lane... | unsafe policy | gone | fenced why
local refused = refusal(KEYS[2], ARGV[1]) or unsafe(KEYS[1])
if refused then
  return refused
end
local tree, parent, call = KEYS[1], ARGV[2], ARGV[3]
local lanes, taken = lanes_of_call(tree, KEYS[3], call)
local new, failed, pending = 0, 0, 0
local is_free = function(number)
  return not taken[number] and redis.call('HEXISTS', KEYS[3], 'ask/' .. call .. '/' .. number) == 1
    and redis.call('HEXISTS', KEYS[3], 'answer/' .. call .. '/' .. number) == 0
    and not redis.call('ZSCORE', KEYS[4], queued_ask(call, number))
end
local first = 10 + 2 * ARGV[9]
for i = 10, first - 1, 2 do
  if is_free(ARGV[i]) then
    redis.call('HSET', KEYS[3], 'answer/' .. call .. '/' .. ARGV[i], stamped(ARGV[i + 1], milliseconds_now()))
    new, failed = new + 1, failed + 1
  end
end
for i = first, #ARGV do
  pending = pending + 1
  if is_free(ARGV[i]) then
    redis.call('ZADD', KEYS[4], 0, queued_ask(call, ARGV[i]))
    new = new + 1
  end
end
count_asks(KEYS[3], call, new, failed, failed)

local live = {}
for _, lane in ipairs(lanes) do
  live[#live + 1] = not lane.ended and lane.id or nil
end
local at_once = math.min(pending, tonumber(ARGV[4]))
local wanted = math.ceil(at_once / ARGV[5])
local now = stamp(seconds_now())
for i = #live + 1, wanted do
  local id = parent .. '.' .. next_number(KEYS[2], 'next_child', ARGV[6])
  local process = process_record(tree, id)
  local width = math.floor(at_once / wanted) + (i <= at_once % wanted and 1 or 0)
  clear(process)
  redis.call('RPUSH', process .. ':journal', cjson.encode({ kind = 'asks', call = call, width = width }))
  live[#live + 1] = id
  lanes[#lanes + 1] = { id = id }
  local ids = {}
  for _, lane in ipairs(lanes) do
    ids[#ids + 1] = lane.id
  end
  redis.call('HSET', KEYS[3], 'lanes/' .. call, table.concat(ids, ' '))
  local others = redis.call('HGET', KEYS[3], 'lanes')
  redis.call('HSET', KEYS[3], 'lanes', others and others .. ' ' .. id or id)
  redis.call('ZADD', tree .. ':processes', now, id)
  redis.call('ZADD', tree .. ':leases', now, id)
  redis.call('HSET', tree, 'used_at', now)
  redis.call('HSET', process, 'parent', parent, 'state', 'ready', 'attempt', 0, 'losses', 0, 'kind', 'asks',
    'call', call, 'program', '', 'bundle', '', 'input', '', 'outputs', '', 'first_fd', 1, 'next_fd', 1, 'next_child', 1,
    'started_at', now, 'ready_at', now, unpack(set_only({ 'traceparent', ARGV[7], 'price', ARGV[8] })))
end
return { 'ok', unpack(live) }
