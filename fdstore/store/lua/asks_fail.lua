-- Answers with one error the asks that a lane has taken and not begun, and those that are queued, a bounded number of
-- them: a limit of the tree is reached.
-- KEYS tree process asks queue
-- ARGV attempt lane_id parent call begun reply most error_words
--   asks     asks of its parent
--   queue    their queue
--   attempt  attempt of the lane
--   begun    the asks that it has begun, separated by blanks
--   reply    the answer (JSON)
--   most     how many at most
--   error_words  words of the error, for search
-- ->    ok how-many | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local known, kept, failed = {}, {}, {}
for number in string.gmatch(begun, '%S+') do
  known[number] = true
end
for number in string.gmatch(redis.call('HGET', asks, 'taken/' .. lane_id) or '', '%S+') do
  local list = known[number] and kept or failed
  list[#list + 1] = number
end
local first, last = '[' .. queued_ask(call, 0), '[' .. queued_ask(call, MAX_INTEGER)
local queued = redis.call('ZRANGEBYLEX', queue, first, last, 'LIMIT', 0, most)
for _, member in ipairs(queued) do
  failed[#failed + 1] = string.format('%.0f', tonumber(string.match(member, '(%d+)$')))
end
if #failed > 0 then
  add_words(tree, 'error', parent, error_words, true)
end
local new, answer = 0, stamped(reply, milliseconds_now())
for _, number in ipairs(failed) do
  new = new + redis.call('HSETNX', asks, 'answer/' .. call .. '/' .. number, answer)
end
redis.call('HSET', asks, 'taken/' .. lane_id, table.concat(kept, ' '))
if #queued > 0 then
  redis.call('ZREM', queue, unpack(queued))
end
count_asks(asks, call, 0, new, new)
return { 'ok', #failed }
