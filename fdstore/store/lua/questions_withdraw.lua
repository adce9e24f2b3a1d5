-- Withdraws questions of a process that no call waits for any more. Those that have an answer keep it.
-- KEYS tree process questions
-- ARGV process_id attempt numbers...
-- ->    ok | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
for i = numbers_from, #ARGV do
  local asked, found = unpack(redis.call('HMGET', questions, ARGV[i], ARGV[i] .. '/answer'))
  if asked and not found then
    settle_question(tree, process_id, questions, ARGV[i], stamped('{"how":"withdrawn"}', milliseconds_now()))
  end
end
return { 'ok' }
