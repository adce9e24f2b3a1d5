-- Claims a ready process: starts its next attempt, under a lease.
-- KEYS tree process
-- ARGV process_id worker lease_s claim runs known_format has_others
--   lease_s       lease in seconds
--   claim         id of this claim
--   runs          what this worker runs: 'agents', 'pipelines', 'neither', or '' for both
--   known_format  the format that the worker knows: a process of a tree of another one stays ready, for newer workers
--   has_others    '1' when other processes run beside it in the same operating-system process
-- ->    ok name value...: the fields of `leases.Claim` that the record has, '' for none
--       | unsafe policy | no state | pipeline | agent | alone | gone | format found|''
-- A process with a loss may have killed its worker: it runs alone until its journal is longer than `alone_until`,
-- its length at the loss. If it has crashed two workers, it runs alone to its end.
local state, kind, attempt = unpack(redis.call('HMGET', process, 'state', 'kind', 'attempt'))
if not state then
  return { 'gone' }
end
if runs ~= '' and runs ~= 'pipelines' and kind == 'pipeline' then
  return { 'pipeline' }
end
if runs ~= '' and runs ~= 'agents' and kind ~= 'pipeline' then
  return { 'agent' }
end
local format, limits = unpack(redis.call('HMGET', tree, 'format', 'limits'))
if format ~= known_format then
  return { 'format', format or '' }
end
local wakes, losses, lost_at, crashes =
  unpack(redis.call('HMGET', process, 'wakes', 'losses', 'lost_at', 'crashes'))
local alone_until = ''
if (tonumber(crashes) or 0) > 1 then
  alone_until = string.format('%.0f', 2 ^ 53)
elseif tonumber(lost_at) and redis.call('LLEN', process .. ':journal') <= tonumber(lost_at) then
  alone_until = lost_at
end
if state == 'ready' then
  if has_others == '1' and alone_until ~= '' and kind ~= 'pipeline' then
    return { 'alone' }
  end
  local refused = unsafe(tree)
  if refused then
    return refused
  end
  attempt = attempt + 1
elseif state ~= 'running' or redis.call('HGET', process, 'claim') ~= claim then
  return { 'no', state } -- otherwise the same claim is repeated, because its reply was lost
end
local now = seconds_now()
local asked_at, for_person_s = unpack(redis.call('HMGET', process, 'asked_at', 'for_person_s'))
if tonumber(asked_at) then -- the time of an agent does not run while it waits for a person
  for_person_s = stamp((tonumber(for_person_s) or 0) + math.max(0, now - asked_at))
  redis.call('HDEL', process, 'asked_at')
  redis.call('HSET', process, 'for_person_s', for_person_s)
end
local until_ = stamp(now + lease_s)
redis.call('HDEL', process, 'wakes', 'trouble')
losses = losses or '0'
local taken = losses ~= '0' and redis.call('HGET', process, 'losses_taken') ~= losses
if taken then
  redis.call('HSET', process, 'losses_taken', losses)
end
redis.call('ZADD', tree .. ':leases', until_, process_id)
redis.call('HSET', tree, 'used_at', stamp(now))
redis.call('HSET', process, 'state', 'running', 'attempt', attempt, 'worker', worker, 'lease_until', until_,
  'claim', claim, 'claimed_at', stamp(now))
local found = { 'ok', 'limits', limits or '', 'claimed_at', stamp(now), 'wakes', wakes or '', 'alone_until', alone_until,
  'losses', losses, 'is_takeover', taken and '1' or '0' }
for _, name in ipairs({ 'attempt', 'program', 'bundle', 'parent', 'kind', 'started_at', 'outputs', 'traceparent', 'traced',
  'waited', 'for_person_s' }) do
  local value = redis.call('HGET', process, name) or ''
  if name == 'bundle' then
    value = redis.call('HGET', tree .. ':programs', value) or ''
  end
  found[#found + 1] = name
  found[#found + 1] = value
end
return found
