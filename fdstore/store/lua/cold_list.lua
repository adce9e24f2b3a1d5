-- Returns objects of a tree that are to be deleted now, and takes those off the list that a record names after all,
-- which only a torn log leaves there. One that is returned can no longer become the object of a content.
-- KEYS tree
-- ARGV most
-- ->    ok left {where, ...}: `left` is '1' if the tree has other objects, now or later
local key = tree .. ':cold:objects'
local due = {}
redis.call('ZREM', key, '') -- removing first, as in write_end, if nothing
for _, where in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', stamp(seconds_now()), 'LIMIT', 0, most)) do
  local process, number = string.match(where, '^(.+)%-(%d+)%-%x+$')
  local named = process and redis.pcall('HGET', process_record(tree, process) .. ':fd:' .. number, 'where')
  if named == where or not process then
    redis.call('ZREM', key, where)
  else
    redis.call('ZADD', key, 0, where)
    due[#due + 1] = where
  end
end
local cold = counted(redis.call('HGET', tree, 'cold_fds'))
return { 'ok', (cold > 0 or redis.call('ZCARD', key) > #due) and '1' or '0', due }
