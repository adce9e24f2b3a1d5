-- Makes an open process ready for workers, with its task as the first journal record.
-- KEYS tree process
-- ARGV process_id brief check_s task words for_parent
--   brief    brief (JSON)
--   check_s  seconds until the sweep wakes it
--   task     first line of the task, '' for none
--   words    words of the task, for search
--   for_parent  '1' if its parent, which a client holds, has this task too
-- ->    ok | gone | fenced why
local refused = refusal(process, '')
if refused then
  return refused
end
local journal = process .. ':journal'
if redis.call('HGET', process, 'state') == 'open' then
  -- push twice, so that UNLINK finds a key and is logged, see common.lua: half of another launch may be there
  redis.call('RPUSH', journal, brief)
  redis.call('UNLINK', journal)
  redis.call('RPUSH', journal, brief)
  add_words(tree, 'task', process_id, words)
  local now = seconds_now()
  redis.call('ZADD', tree .. ':leases', stamp(now + check_s), process_id)
  redis.call('HSET', process, 'state', 'ready', 'ready_at', stamp(now), unpack(set_only({ 'task', task })))
  local parent = for_parent == '1' and redis.call('HGET', process, 'parent')
  if parent and redis.call('EXISTS', process_record(tree, parent)) == 1 then
    redis.call('HSET', process_record(tree, parent), 'task', task)
  end
elseif redis.call('LINDEX', journal, 0) ~= brief then
  return { 'fenced', 'it was launched before' }
end
return { 'ok' }
