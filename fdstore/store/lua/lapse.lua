-- Decides what to do about a process whose lease may have expired or whose wake-up may be lost.
-- KEYS tree process
-- ARGV process_id most_losses:number check_s how of_claim expired_by:number lease_s:number sent_in_vain:number why
--   most_losses   how many losses are too many
--   check_s       seconds until the sweep checks again, at first: after some equal pauses they double while no worker
--                 claims it, or a busy day would fill the queue with repeats
--   how           'returned' if its worker returns it, which is not a loss; 'unstarted' if its worker returns it
--                 before it has begun, even a pipeline; 'dead' if its worker is known to be dead; 'crashed' if it is
--                 known to have crashed its worker; else ''
--   of_claim      the attempt that returns it, or the id of the dead worker's claim
--   expired_by    the time by which its lease must have expired, '' for the current time. If Redis was down in
--                 between, a later claim had less than a lease to renew
--   lease_s       the lease in seconds
--   sent_in_vain  how often its wake-up had been sent in vain, if its worker returns it because it cannot run it
--   why           why, which stays in the record until it is claimed
-- ->    ok 'wake' attempt '1'|'0': whether it was lost | ok 'end' attempt reason | ok 'nothing'
-- Every loss is counted in `losses`. Only those that it caused, counted in `crashes`, make it poison: workers and
-- machines die for other reasons too. A process that takes its supervisor down with it, as a full container does,
-- cannot be told from an innocent one, but it is lost at the same point again and again (`lost_here`).
-- Each is written down in `recent_losses` (losses.py), since a lost attempt writes nothing.
local EQUAL_PAUSES = 3 -- workers that die one after the other may each have received a wake-up
local LOST_HERE = 10 -- losses in a row at one point of the journal that weigh as much as one crash

-- Returns the losses that are written down, the last ones, with this one.
local function with_loss(recent, ...)
  local kept, worker = {}, (...)
  for each in string.gmatch(string.sub(recent or '', 1, MAX_LOSSES_KEPT * 500), '%S+') do
    kept[#kept + 1] = each
  end
  worker = string.sub(string.gsub(worker or '', '[^%w%p]', '_'), 1, 300)
  kept[#kept + 1] = string.format('%.0f:%.6f:%.0f:%.0f:%s:', select(2, ...)) .. worker
  return table.concat(kept, ' ', math.max(1, #kept - MAX_LOSSES_KEPT + 1))
end

local now = seconds_now()
local state, until_, attempt, kind, losses, wakes =
  unpack(redis.call('HMGET', process, 'state', 'lease_until', 'attempt', 'kind', 'losses', 'wakes'))
local returned, dead = how == 'returned' or how == 'unstarted', how == 'dead' or how == 'crashed'
local moment = expired_by or now
if dead and (state ~= 'running' or redis.call('HGET', process, 'claim') ~= of_claim) then
  return { 'ok', 'nothing' } -- it was taken over, or returned, before its worker died
end
until_ = lease_end(until_, now, lease_s)
local lost = state == 'running' and not returned and (dead or until_ <= moment)
local due = redis.call('ZSCORE', tree .. ':leases', process_id)
if kind == 'pipeline' and state == 'running' and how ~= 'unstarted' then
  -- its commands may have had side effects: never run it twice
  return lost and { 'ok', 'end', attempt, WORKER_LOST } or { 'ok', 'nothing' }
end
redis.call('ZREM', tree .. ':leases', process_id) -- removing first, as in write_end
if lost or state == 'running' and returned and attempt == of_claim then
  if lost then
    local lost_at, crashes, lost_here, worker, recent =
      unpack(redis.call('HMGET', process, 'lost_at', 'crashes', 'lost_here', 'worker', 'recent_losses'))
    local length = redis.call('LLEN', process .. ':journal')
    crashes = counted(crashes) + (how == 'crashed' and 1 or 0)
    lost_here = tonumber(lost_at) == length and counted(lost_here) + 1 or 1
    losses = counted(losses) + 1
    redis.call('HSET', process, 'losses', string.format('%.0f', losses), 'lost_at', length,
      'crashes', string.format('%.0f', crashes), 'lost_here', string.format('%.0f', lost_here), 'recent_losses',
      with_loss(recent, worker, losses, now, counted(attempt), length, dead and how or 'expired'))
    despite_damage('tree', tree, count_troubles, tree, now, 0, 1)
    if math.max(crashes, lost_here / LOST_HERE) >= most_losses then
      redis.call('ZADD', tree .. ':leases', stamp(until_), process_id) -- the caller may die before it ends the process
      return { 'ok', 'end', attempt, POISON }
    end
  end
  make_ready(tree, process_id, stamp(now))
  if why ~= '' then
    redis.call('HSET', process, 'trouble', why)
  end
  state = 'ready'
end
if state == 'waiting' and due then
  if tonumber(due) > now then
    -- longer than it may wait only if the clock was set back: then it begins again
    local most = tonumber(redis.call('HGET', process, 'wait_s')) or math.huge
    redis.call('ZADD', tree .. ':leases', stamp(math.min(due, now + most)), process_id)
  else
    -- its wait has timed out
    make_ready(tree, process_id, stamp(now))
    state = 'ready'
  end
end
if state == 'ready' then
  -- a worker that cannot run it passes on how often its wake-up was sent in vain
  wakes = math.min(counted(sent_in_vain or wakes), EQUAL_PAUSES - 1 + MAX_DOUBLINGS)
  redis.call('HSET', process, 'wakes', wakes + 1)
  local pause = check_s * 2 ^ math.max(0, wakes - EQUAL_PAUSES + 1)
  redis.call('ZADD', tree .. ':leases', stamp(now + pause), process_id)
  return { 'ok', 'wake', attempt, lost and '1' or '0' }
end
if state == 'running' then
  redis.call('ZADD', tree .. ':leases', stamp(until_), process_id)
end
return { 'ok', 'nothing' }
