-- Gives a named content of a process another name.
-- KEYS  1 tree  2 process  3 its fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 name  5 new name  6 '1' to replace what has that name
--       7 words of the new name, for search
-- ->    ok content metadata | not_found id known... | conflict name found | gone | fenced why
local done = answered(KEYS[4], ARGV[1], 1)
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
local content = content_of(KEYS[3], ARGV[4])
if not content then
  return not_found(KEYS[3], ARGV[4])
end
if ARGV[4] ~= ARGV[5] then
  local replaced = content_of(KEYS[3], ARGV[5])
  refused = conflict(KEYS[1], ARGV[5], replaced, ARGV[6] == '1' and '' or 'absent')
  if refused then
    return refused
  end
  add_words(KEYS[1], 'source', ARGV[3] .. ' ' .. ARGV[5], ARGV[7])
  add_name(KEYS[2], ARGV[5])
  -- one command for both, so that the content has one name in a torn log too
  redis.call('HSET', KEYS[3], ARGV[5], content, ARGV[4], '')
  remove_names(KEYS[2], { ARGV[4] })
  if replaced then
    release(KEYS[1], ARGV[3], { replaced })
  end
end
return answer(KEYS[4], ARGV[1], { 'ok', content, redis.call('HGETALL', content_record(KEYS[1], content)) })
