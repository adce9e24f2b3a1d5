-- Gives a named content of a process another name.
-- KEYS tree process fd_table answers
-- ARGV op attempt process_id fd new_fd replaces words
--   answers   where the reply to `op` is kept
--   fd        name
--   replaces  '1' to replace what has that name
--   words     words of the new name, for search
-- ->    ok content metadata | not_found id known... | conflict name found | gone | fenced why
local done = answered(answers, op, 1)
if done then
  return done
end
local refused = refusal(process, attempt)
if refused then
  return refused
end
local content = content_of(fd_table, fd)
if not content then
  return not_found(fd_table, fd)
end
if fd ~= new_fd then
  local replaced = content_of(fd_table, new_fd)
  refused = conflict(tree, new_fd, replaced, replaces == '1' and '' or 'absent')
  if refused then
    return refused
  end
  add_words(tree, 'source', process_id .. ' ' .. new_fd, words, true)
  add_name(process, new_fd)
  -- one command for both, so that the content has one name in a torn log too
  redis.call('HSET', fd_table, new_fd, content, fd, '')
  remove_names(process, { fd })
  if replaced then
    release(tree, process_id, { replaced })
  end
end
return answer(answers, op, { 'ok', content, redis.call('HGETALL', content_record(tree, content)) })
