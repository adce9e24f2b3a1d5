-- Claims a ready process: starts its next attempt, under a lease.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 worker  3 lease in seconds  4 id of this claim
--       5 what this worker runs: 'agents', 'pipelines', 'neither', or '' for both
--       6 the format that the worker knows: a process of a tree of another one stays ready, for newer workers
--       7 '1' when other processes run beside it in the same operating-system process
-- ->    ok attempt program bundle-json|'' parent|'' kind|'' started_at|'' outputs|'' limits now wakes alone_until|''
--       losses taken traceparent|'' traced|'' waited|''
--       taken: '1' for the first attempt after a loss; traced: traceparent of the last attempt; waited: the last
--       attempt that waited for children
--       | unsafe policy | no state | pipeline | agent | alone | gone | format found|''
-- A process with a loss may have killed its worker: it runs alone until its journal is longer than `alone_until`,
-- its length at the loss. If it has crashed two workers, it runs alone to its end.
local state, kind, attempt = unpack(redis.call('HMGET', KEYS[2], 'state', 'kind', 'attempt'))
if not state then
  return { 'gone' }
end
if ARGV[5] ~= '' and ARGV[5] ~= 'pipelines' and kind == 'pipeline' then
  return { 'pipeline' }
end
if ARGV[5] ~= '' and ARGV[5] ~= 'agents' and kind ~= 'pipeline' then
  return { 'agent' }
end
local format, limits = unpack(redis.call('HMGET', KEYS[1], 'format', 'limits'))
if format ~= ARGV[6] then
  return { 'format', format or '' }
end
local wakes, losses, lost_at, crashes =
  unpack(redis.call('HMGET', KEYS[2], 'wakes', 'losses', 'lost_at', 'crashes'))
local alone_until = ''
if (tonumber(crashes) or 0) > 1 then
  alone_until = string.format('%.0f', 2 ^ 53)
elseif tonumber(lost_at) and redis.call('LLEN', KEYS[2] .. ':journal') <= tonumber(lost_at) then
  alone_until = lost_at
end
if state == 'ready' then
  if ARGV[7] == '1' and alone_until ~= '' and kind ~= 'pipeline' then
    return { 'alone' }
  end
  local refused = unsafe(KEYS[1])
  if refused then
    return refused
  end
  attempt = attempt + 1
elseif state ~= 'running' or redis.call('HGET', KEYS[2], 'claim') ~= ARGV[4] then
  return { 'no', state } -- otherwise the same claim is repeated, because its reply was lost
end
local now = seconds_now()
local until_ = stamp(now + ARGV[3])
redis.call('HDEL', KEYS[2], 'wakes', 'trouble')
losses = losses or '0'
local taken = losses ~= '0' and redis.call('HGET', KEYS[2], 'losses_taken') ~= losses
if taken then
  redis.call('HSET', KEYS[2], 'losses_taken', losses)
end
redis.call('ZADD', KEYS[1] .. ':leases', until_, ARGV[1])
redis.call('HSET', KEYS[1], 'used_at', stamp(now))
redis.call('HSET', KEYS[2], 'state', 'running', 'attempt', attempt, 'worker', ARGV[2], 'lease_until', until_,
  'claim', ARGV[4], 'claimed_at', stamp(now))
local program, bundle, parent, started_at, outputs
attempt, program, bundle, parent, started_at, outputs =
  unpack(redis.call('HMGET', KEYS[2], 'attempt', 'program', 'bundle', 'parent', 'started_at', 'outputs'))
local programs = bundle and redis.call('HGET', KEYS[1] .. ':programs', bundle)
return { 'ok', attempt, program or '', programs or '', parent or '', kind or '', started_at or '', outputs or '',
  limits or '', stamp(now), wakes or 0, alone_until, losses, taken and '1' or '0',
  redis.call('HGET', KEYS[2], 'traceparent') or '', redis.call('HGET', KEYS[2], 'traced') or '', redis.call('HGET', KEYS[2], 'waited') or '' }
