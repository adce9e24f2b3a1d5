-- Decides what to do about a process whose lease may have expired or whose wake-up may be lost.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 how many losses are too many  3 seconds until the sweep checks again, at first: after
--       some equal pauses they double while no worker claims it, or a busy day would fill the queue with repeats
--       4 '1' if its worker returns it, which is not a loss; '3' if its worker returns it before it has begun,
--       even a pipeline; '2' if its worker is known to be dead; '4' if it is known to have crashed its worker
--       5 the attempt that returns it, or the id of the dead worker's claim
--       6 the time by which its lease must have expired, '' for now: a later claim had less than a lease
--         to renew, if Redis was down in between
--       7 the lease in seconds
--       8 how often its wake-up had been sent in vain, if its worker returns it because it cannot run it
--       9 then why, which stays in the record until it is claimed
-- ->    ok 'wake' attempt '1'|'0': whether it was lost | ok 'poison' attempt | ok 'lost' attempt | ok 'nothing'
-- Every loss is counted in `losses`. Only those that it caused, counted in `crashes`, make it poison: workers and
-- machines die for other reasons too. A process that takes its supervisor down with it, as a full container does,
-- cannot be told from an innocent one, but it is lost at the same point again and again (`lost_here`).
local EQUAL_PAUSES = 3 -- workers that die one after the other may each have received a wake-up
local LOST_HERE = 10 -- losses in a row at one point of the journal that weigh as much as one crash
local now = seconds_now()
local state, until_, attempt, kind, losses, wakes =
  unpack(redis.call('HMGET', KEYS[2], 'state', 'lease_until', 'attempt', 'kind', 'losses', 'wakes'))
local returned, dead = ARGV[4] == '1' or ARGV[4] == '3', ARGV[4] == '2' or ARGV[4] == '4'
local moment = tonumber(ARGV[6]) or now
if dead and (state ~= 'running' or redis.call('HGET', KEYS[2], 'claim') ~= ARGV[5]) then
  return { 'ok', 'nothing' } -- it was taken over, or returned, before its worker died
end
until_ = lease_end(until_, now, tonumber(ARGV[7]))
local lost = state == 'running' and not returned and (dead or until_ <= moment)
local due = redis.call('ZSCORE', KEYS[1] .. ':leases', ARGV[1])
if kind == 'pipeline' and state == 'running' and ARGV[4] ~= '3' then
  -- its commands may have had side effects: never run it twice
  return { 'ok', lost and 'lost' or 'nothing', attempt }
end
redis.call('ZREM', KEYS[1] .. ':leases', ARGV[1]) -- removing first, as in write_end
if lost or state == 'running' and returned and attempt == ARGV[5] then
  if lost then
    local lost_at, crashes, lost_here = unpack(redis.call('HMGET', KEYS[2], 'lost_at', 'crashes', 'lost_here'))
    local length = redis.call('LLEN', KEYS[2] .. ':journal')
    crashes = counted(crashes) + (ARGV[4] == '4' and 1 or 0)
    lost_here = tonumber(lost_at) == length and counted(lost_here) + 1 or 1
    redis.call('HSET', KEYS[2], 'losses', string.format('%.0f', counted(losses) + 1), 'lost_at', length,
      'crashes', string.format('%.0f', crashes), 'lost_here', string.format('%.0f', lost_here))
    despite_damage('tree', KEYS[1], count_troubles, KEYS[1], now, 0, 1)
    if math.max(crashes, lost_here / LOST_HERE) >= tonumber(ARGV[2]) then
      redis.call('ZADD', KEYS[1] .. ':leases', stamp(until_), ARGV[1]) -- the caller may die before it ends the process
      return { 'ok', 'poison', attempt }
    end
  end
  redis.call('HSET', KEYS[2], 'state', 'ready', 'ready_at', stamp(now))
  redis.call('HDEL', KEYS[2], 'worker', 'lease_until', 'trouble')
  if (ARGV[9] or '') ~= '' then
    redis.call('HSET', KEYS[2], 'trouble', ARGV[9])
  end
  state = 'ready'
end
if state == 'waiting' and due then
  if tonumber(due) > now then
    -- longer than it may wait only if the clock was set back: then it begins again
    local most = tonumber(redis.call('HGET', KEYS[2], 'wait_s')) or math.huge
    redis.call('ZADD', KEYS[1] .. ':leases', stamp(math.min(due, now + most)), ARGV[1])
  else
    -- its wait has timed out
    redis.call('HSET', KEYS[2], 'state', 'ready', 'ready_at', stamp(now))
    redis.call('HDEL', KEYS[2], 'waiting_for')
    state = 'ready'
  end
end
if state == 'ready' then
  -- a worker that cannot run it passes on how often its wake-up was sent in vain
  wakes = math.min(counted(ARGV[8] or wakes), EQUAL_PAUSES - 1 + MAX_DOUBLINGS)
  redis.call('HSET', KEYS[2], 'wakes', wakes + 1)
  local pause = ARGV[3] * 2 ^ math.max(0, wakes - EQUAL_PAUSES + 1)
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(now + pause), ARGV[1])
  return { 'ok', 'wake', attempt, lost and '1' or '0' }
end
if state == 'running' then
  redis.call('ZADD', KEYS[1] .. ':leases', stamp(until_), ARGV[1])
end
return { 'ok', 'nothing' }
