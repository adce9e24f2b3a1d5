-- Makes an open process ready for workers, with its task as the first journal record.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 brief (JSON)  3 seconds until the sweep wakes it  4 first line of the task, '' for none
--       5 words of the task, for search
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[2], '')
if refused then
  return refused
end
local journal = KEYS[2] .. ':journal'
if redis.call('HGET', KEYS[2], 'state') == 'open' then
  -- push twice, so that UNLINK finds a key and is logged, see common.lua: half of another launch may be there
  redis.call('RPUSH', journal, ARGV[2])
  redis.call('UNLINK', journal)
  redis.call('RPUSH', journal, ARGV[2])
  add_words(KEYS[1], 'task', ARGV[1], ARGV[5])
  local now = seconds_now()
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(now + ARGV[3]), ARGV[1])
  redis.call('HSET', KEYS[2], 'state', 'ready', 'ready_at', stamp(now), unpack(set_only({ 'task', ARGV[4] })))
elseif redis.call('LINDEX', journal, 0) ~= ARGV[2] then
  return { 'fenced', 'it was launched before' }
end
return { 'ok' }
