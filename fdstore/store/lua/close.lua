-- Drops one descriptor; the process may have ended. The content is deleted with its last holder. Only callers with
-- an attempt are fenced, because a newer attempt may run the process.
-- KEYS tree process fd_table answers
-- ARGV op attempt process_id fd
--   answers   where the reply to `op` is kept
-- ->    ok fd | not_found id known... | gone | fenced why
local done = answered(answers, op, 1)
if done then
  return done
end
local refused = attempt ~= '' and refusal(process, attempt)
if refused then
  return refused
end
if redis.call('EXISTS', tree, process) < 2 then
  return { 'gone' }
end
local content = content_of(fd_table, fd)
if not content then
  return not_found(fd_table, fd)
end
remove_names(process, { fd })
release(tree, process_id, { content })
return answer(answers, op, { 'ok', fd })
