-- Parks a process while children run, which frees its worker; the end of the last child makes it ready again.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 attempt  3 the maximum wait in seconds, or ''  4.. children
-- ->    ok 'waiting'|'go' | gone | fenced why
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
if ARGV[2] == '' then
  return { 'fenced', 'it is not run by a worker' }
end
local left = {}
for i = 4, #ARGV do
  local state = redis.call('HGET', process_record(KEYS[1], ARGV[i]), 'state')
  if state and not ENDED[state] then
    left[#left + 1] = ARGV[i]
  end
end
if #left == 0 then
  return { 'ok', 'go' }
end
redis.call('HDEL', KEYS[2], 'lease_until', 'worker') -- removing first, as in write_end
redis.call('HSET', KEYS[2], 'state', 'waiting', 'waiting_for', table.concat(left, ' '),
  'wait_s', ARGV[3], 'waited', ARGV[2])
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1])
else
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(seconds_now() + ARGV[3]), ARGV[1])
end
return { 'ok', 'waiting' }
