-- Parks a process while children run or a person is asked, which frees its worker; the end of the last child makes it
-- ready again if it waits for no person, and so does an answer to any question.
-- KEYS tree process
-- ARGV process_id attempt most_s questions children...
--   most_s     the maximum wait in seconds, or ''
--   questions  the numbers of its questions to a person that it waits for, separated by blanks
-- ->    ok 'waiting'|'go' | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
if attempt == '' then
  return { 'fenced', 'it is not run by a worker' }
end
local left = {}
for i = children_from, #ARGV do
  local state = redis.call('HGET', process_record(tree, ARGV[i]), 'state')
  if state and not ENDED[state] then
    left[#left + 1] = ARGV[i]
  end
end
for number in string.gmatch(questions, '%d+') do
  if redis.call('HEXISTS', process .. ':questions', number .. '/answer') == 1 then
    return { 'ok', 'go' }
  end
end
if questions ~= '' then
  left[#left + 1] = PERSON
end
if #left == 0 then
  return { 'ok', 'go' }
end
redis.call('HDEL', process, 'lease_until', 'worker') -- removing first, as in write_end
redis.call('HSET', process, 'state', 'waiting', 'waiting_for', table.concat(left, ' '),
  'wait_s', most_s, 'waited', attempt, 'asked_at', questions ~= '' and stamp(seconds_now()) or '')
if most_s == '' then
  redis.call('ZREM', tree .. ':leases', process_id)
else
  redis.call('ZADD', tree .. ':leases', stamp(seconds_now() + most_s), process_id)
end
return { 'ok', 'waiting' }
