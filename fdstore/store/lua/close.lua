-- Drops one descriptor; the process may have ended. The content is deleted with its last holder. Only callers with
-- an attempt are fenced, because a newer attempt may run the process.
-- KEYS  1 tree  2 process  3 its fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 fd
-- ->    ok fd | not_found id known... | gone | fenced why
local done = answered(KEYS[4], ARGV[1], 1)
if done then
  return done
end
local refused = ARGV[2] ~= '' and refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
if redis.call('EXISTS', KEYS[1], KEYS[2]) < 2 then
  return { 'gone' }
end
local content = content_of(KEYS[3], ARGV[4])
if not content then
  return not_found(KEYS[3], ARGV[4])
end
remove_names(KEYS[2], { ARGV[4] })
release(KEYS[1], ARGV[3], { content })
return answer(KEYS[4], ARGV[1], { 'ok', ARGV[4] })
