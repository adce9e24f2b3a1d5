-- Answers a question of a process to a person: the first answer stays. A process that waits for it becomes ready.
-- KEYS tree process questions open answers
-- ARGV process_id number record
--   open     the open ones of the tree
--   answers  where the reply is stored, for a repeat of the same operation
--   record   the answer (JSON)
-- ->    ok answer 'wake'|'' | answered answer | ended state | late | none open-numbers | gone
local before = answered(answers, '', 2)
if before then
  return before
end
local state, waiting = unpack(redis.call('HMGET', process, 'state', 'waiting_for'))
if not state then
  return { 'gone' }
end
local asked, found, until_ = unpack(redis.call('HMGET', questions, number, number .. '/answer', number .. '/until'))
if not asked then
  return { 'none', redis.call('HGET', questions, 'open') or '' }
end
if found then
  return { 'answered', found }
end
if ENDED[state] then
  return { 'ended', state }
end
local now = seconds_now()
if now >= (tonumber(until_) or 0) then
  return { 'late' }
end
settle_question(tree, process_id, questions, number, stamped(record, milliseconds_now()))
local wake = ''
if state == 'waiting' and string.find(' ' .. (waiting or '') .. ' ', ' ' .. PERSON .. ' ', 1, true) then
  make_ready(tree, process_id, stamp(now))
  wake = 'wake'
end
redis.call('HSET', tree, 'used_at', stamp(now))
return answer(answers, '', { 'ok', redis.call('HGET', questions, number .. '/answer'), wake })
