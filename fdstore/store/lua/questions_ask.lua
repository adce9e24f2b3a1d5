-- Asks a person a question of a process, once for each call. A repeat finds it again, with its answer; a question whose
-- time is over gets that as its answer.
-- KEYS tree process questions open
-- ARGV process_id attempt call record timeout_s:number most_open:number
--   questions  those of the process (people.py)
--   open       the open ones of the tree
--   call       what identifies the call that asks
--   record     the question (JSON), '' to only look for it
--   timeout_s  seconds until its time is over
--   most_open  how many open questions a process may have
-- ->    ok number until | ok number until answer record | ok '' (there is none yet) | lost number | full | gone
--       fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local now = seconds_now()
local number = redis.call('HGET', questions, 'call/' .. call)
if not number then
  if record == '' then
    return { 'ok', '' }
  end
  local next_, listed = unpack(redis.call('HMGET', questions, 'next', 'open'))
  local count = 0
  for _ in items_of(listed, '%d+') do
    count = count + 1
  end
  if count >= most_open then
    return { 'full' }
  end
  number = string.format('%.0f', math.max(counted(next_), 1))
  redis.call('ZADD', open, stamp(now), process_id .. '/' .. number)
  redis.call('HSET', questions, 'next', string.format('%.0f', tonumber(number) + 1),
    'call/' .. call, number, number, record, number .. '/asked', stamp(now), number .. '/until', stamp(now + timeout_s),
    'open', listed and listed ~= '' and listed .. ' ' .. number or number)
  return { 'ok', number, stamp(now + timeout_s) }
end
local asked, found, until_ = unpack(redis.call('HMGET', questions, number, number .. '/answer', number .. '/until'))
if not asked or not tonumber(until_) then
  return { 'lost', number } -- what is settled is final, so nothing is settled that cannot be read
end
local left = tonumber(until_) - now
if left > timeout_s then -- the clock was set back: its time begins again
  left = timeout_s
  redis.call('HSET', questions, number .. '/until', stamp(now + left))
end
if not found and left <= 0 then
  found = settle_question(tree, process_id, questions, number, stamped('{"how":"timeout"}', milliseconds_now()))
end
if found then
  return { 'ok', number, stamp(now + left), found, asked }
end
return { 'ok', number, stamp(now + left) }
