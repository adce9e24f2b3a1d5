-- Decides what becomes of a process whose lease time is over or whose wake-up may be lost.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 how many losses are too many  3 seconds until the sweep looks again
--       4 '1' if its worker gives it back, which is no loss; 5 the attempt that gives it back
-- ->    ok 'wake' | ok 'poison' attempt | ok 'nothing'
local now = seconds_now()
local state, until_, attempt = unpack(redis.call('HMGET', KEYS[2], 'state', 'lease_until', 'attempt'))
local given_back = ARGV[4] == '1'
if state == 'running' and (given_back and attempt == ARGV[5] or not given_back and tonumber(until_) <= now) then
  if not given_back and redis.call('HINCRBY', KEYS[2], 'losses', 1) >= tonumber(ARGV[2]) then
    return { 'ok', 'poison', attempt }
  end
  redis.call('HSET', KEYS[2], 'state', 'ready')
  redis.call('HDEL', KEYS[2], 'worker', 'lease_until')
  state = 'ready'
end
if state == 'ready' then
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(now + ARGV[3]), ARGV[1])
  return { 'ok', 'wake' }
end
if state ~= 'running' then
  redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1])
end
return { 'ok', 'nothing' }
