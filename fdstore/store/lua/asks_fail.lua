-- Answers with one error the asks that a lane has taken and not begun, and those that are queued, a bounded number of
-- them: a limit of the tree is reached.
-- KEYS  1 process  2 asks of its parent  3 their queue
-- ARGV  1 attempt of the lane  2 lane id  3 call  4 the asks that it has begun, separated by blanks
--       5 the answer (JSON)  6 how many at most
-- ->    ok how-many | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local call, known, kept, failed = ARGV[3], {}, {}, {}
for number in string.gmatch(ARGV[4], '%S+') do
  known[number] = true
end
for number in string.gmatch(redis.call('HGET', KEYS[2], 'taken/' .. ARGV[2]) or '', '%S+') do
  local list = known[number] and kept or failed
  list[#list + 1] = number
end
local first, last = '[' .. queued_ask(call, 0), '[' .. queued_ask(call, MAX_INTEGER)
local queued = redis.call('ZRANGEBYLEX', KEYS[3], first, last, 'LIMIT', 0, ARGV[6])
for _, member in ipairs(queued) do
  failed[#failed + 1] = string.format('%.0f', tonumber(string.match(member, '(%d+)$')))
end
local new, answer = 0, stamped(ARGV[5], milliseconds_now())
for _, number in ipairs(failed) do
  new = new + redis.call('HSETNX', KEYS[2], 'answer/' .. call .. '/' .. number, answer)
end
redis.call('HSET', KEYS[2], 'taken/' .. ARGV[2], table.concat(kept, ' '))
if #queued > 0 then
  redis.call('ZREM', KEYS[3], unpack(queued))
end
count_asks(KEYS[2], call, 0, new, new)
return { 'ok', #failed }
