-- Decides what becomes of a process whose lease time is over or whose wake-up may be lost.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 how many losses are too many  3 seconds until the sweep looks again, at first:
--       each time nobody has claimed it they double, or a busy day would fill the queue with repeats
--       4 '1' if its worker gives it back, which is no loss; '2' if its worker is known to be dead;
--       '3' if its worker gives it back before it has begun: a pipeline too
--       5 the attempt that gives it back, or the id of the claim that the dead worker held
--       6 the moment by which a lease must have run out, '' for now: whoever took the process later had
--         less than a lease to renew it, if Redis was away in between
--       7 how often it had been sent in vain, if its worker gives it back because it is too old for it
-- ->    ok 'wake' | ok 'poison' attempt | ok 'lost' attempt | ok 'nothing'
local MAX_DOUBLINGS = 4
local now = seconds_now()
local state, until_, attempt, kind, losses, wakes =
  unpack(redis.call('HMGET', KEYS[2], 'state', 'lease_until', 'attempt', 'kind', 'losses', 'wakes'))
local given_back, dead = ARGV[4] == '1' or ARGV[4] == '3', ARGV[4] == '2'
local moment = tonumber(ARGV[6]) or now
if dead and (state ~= 'running' or redis.call('HGET', KEYS[2], 'claim') ~= ARGV[5]) then
  return { 'ok', 'nothing' } -- it was taken over, or given back, before its worker died
end
until_ = lease_end(until_, now)
local lost = state == 'running' and not given_back and (dead or until_ <= moment)
local due = redis.call('ZSCORE', KEYS[1] .. ':leases', ARGV[1])
if kind == 'pipeline' and state == 'running' and ARGV[4] ~= '3' then
  -- its commands may have done anything: it is never run twice
  return { 'ok', lost and 'lost' or 'nothing', attempt }
end
redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1]) -- removing first, as in write_end
if lost or state == 'running' and given_back and attempt == ARGV[5] then
  if lost then
    losses = counted(losses) + 1
    redis.call('HSET', KEYS[2], 'losses', string.format('%.0f', losses),
      'lost_at', redis.call('LLEN', KEYS[2] .. ':journal'))
    if losses >= tonumber(ARGV[2]) then
      redis.call('ZADD', KEYS[1] .. ':leases', stamp(until_), ARGV[1]) -- whoever decided it may die before it is done
      return { 'ok', 'poison', attempt }
    end
  end
  redis.call('HSET', KEYS[2], 'state', 'ready')
  redis.call('HDEL', KEYS[2], 'worker', 'lease_until', 'trouble')
  state = 'ready'
end
if state == 'waiting' and due then
  if tonumber(due) > now then
    redis.call('ZADD', KEYS[1] .. ':leases', due, ARGV[1])
  else
    -- it waited for a time too, and that is over
    redis.call('HSET', KEYS[2], 'state', 'ready')
    redis.call('HDEL', KEYS[2], 'waiting_for')
    state = 'ready'
  end
end
if state == 'ready' then
  -- a worker that gave it back because it is too old for it says how often it was sent in vain before
  wakes = math.min(counted(ARGV[7] or wakes), MAX_DOUBLINGS)
  redis.call('HSET', KEYS[2], 'wakes', wakes + 1)
  local pause = ARGV[3] * 2 ^ wakes
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(now + pause), ARGV[1])
  return { 'ok', 'wake' }
end
if state == 'running' then
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(until_), ARGV[1])
end
return { 'ok', 'nothing' }
