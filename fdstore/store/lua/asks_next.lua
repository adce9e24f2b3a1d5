-- Stores the answers of a lane, counts them for its tree, and takes its next asks, or ends the lane if none are left.
-- A repeat, after a lost reply, stores nothing twice and returns the same asks: those that the lane has taken and does
-- not know of.
-- KEYS tree lane_record asks queue journal
-- ARGV attempt lane_id parent call width:number held error_words given...
--   asks         asks of its parent
--   queue        their queue
--   journal      journal of the lane
--   width        how many asks it may have at once
--   held         the asks that it has, separated by blanks
--   error_words  words of the errors among its answers, for search
--   given        its answers, each: number, answer (JSON), '1' if it is an error, '1' if the model answered, tokens:
--                input, output, those read from a cache, written to one
-- ->    ok 'go'|'wait'|'ended' ancestors-to-wake number ask... | ok 'limit' name limit used | gone | fenced why
--       go: without asks if it may have 0 of them  wait: it has none, and may take none before those of other lanes are answered
local ANSWER_ARGS = 8
local state, current = unpack(redis.call('HMGET', lane_record, 'state', 'attempt'))
if state == 'exited' and current == attempt then
  return { 'ok', 'ended', '' } -- repeated, because its reply was lost
end
local refused = refusal(lane_record, attempt)
if refused then
  return refused
end

local answered_now, calls, failed, sums, at_ms = {}, 0, 0, { 0, 0, 0, 0 }, milliseconds_now()
for i = given_from, #ARGV, ANSWER_ARGS do
  local number = ARGV[i]
  if redis.call('HSETNX', asks, 'answer/' .. call .. '/' .. number, stamped(ARGV[i + 1], at_ms)) == 1 then
    answered_now[#answered_now + 1] = tonumber(number)
    failed, calls = failed + ARGV[i + 2], calls + ARGV[i + 3]
    for j = 1, 4 do
      sums[j] = sums[j] + ARGV[i + 3 + j]
    end
  end
end
if #answered_now > 0 then
  add_words(tree, 'error', parent, error_words, true)
  count_asks(asks, call, 0, #answered_now, failed)
  if calls > 0 then
    count_answers(tree, calls, sums[1] + sums[2])
    count_tokens(lane_record, sums)
  end
  -- its length shows that the lane gets on (lapse.lua)
  redis.call('RPUSH', journal, stamped(cjson.encode({ kind = 'answered', asks = answered_now }), at_ms))
end

local known, mine, unknown = {}, {}, {}
for number in string.gmatch(held, '%S+') do
  known[number] = true
end
for number in string.gmatch(redis.call('HGET', asks, 'taken/' .. lane_id) or '', '%S+') do
  if redis.call('HEXISTS', asks, 'answer/' .. call .. '/' .. number) == 0 then
    mine[#mine + 1] = number
    unknown[#unknown + 1] = not known[number] and number or nil
  end
end

local name, limit, used = budget_reached(tree)
if not name then
  name, limit, used = day_limit(tree)
end
local first, last = '[' .. queued_ask(call, 0), '[' .. queued_ask(call, MAX_INTEGER)
local most = name and 0 or math.max(0, width - #mine)
local room = most > 0 and calls_left(tree) or math.huge
if room < math.huge then
  local _, taken = lanes_of_call(tree, asks, call)
  for _, lane in pairs(taken) do
    room = room - (lane.ended and 0 or 1)
  end
  room = math.max(0, room + #answered_now) -- `taken` still lists those
end
local queued = {}
if most > 0 then
  queued = redis.call('ZRANGEBYLEX', queue, first, last, 'LIMIT', 0, math.max(1, math.min(most, room)))
end
for i = 1, math.min(#queued, room) do
  local number = string.format('%.0f', tonumber(string.match(queued[i], '(%d+)$')))
  mine[#mine + 1], unknown[#unknown + 1] = number, number
end
redis.call('HSET', asks, 'taken/' .. lane_id, table.concat(mine, ' '))
if #queued > 0 and room > 0 then
  redis.call('ZREM', queue, unpack(queued, 1, math.min(#queued, room)))
end
if name then
  if #unknown > 0 or #redis.call('ZRANGEBYLEX', queue, first, last, 'LIMIT', 0, 1) > 0 then
    return { 'ok', 'limit', name, limit, used }
  end
end
if #mine == 0 and #queued == 0 and width > 0 then
  local now = stamp(seconds_now())
  write_end(tree, lane_id, 'exited', now, '', 0, '', '', '')
  return { 'ok', 'ended', notify_ancestors(tree, lane_id, { [lane_id] = true }, now) }
end
local reply = { 'ok', #mine == 0 and 'wait' or 'go', '' }
for _, number in ipairs(width > 0 and unknown or {}) do
  reply[#reply + 1] = number
  reply[#reply + 1] = redis.call('HGET', asks, 'ask/' .. call .. '/' .. number) or ''
end
return reply
