-- Opens or creates the root process of a tree.
-- KEYS  1 tree  2 its process record  3 answer of this operation
-- ARGV  1 answer field  2 process id  3 '1' if it must not exist yet  4 limits (JSON)
--       5 program  6 bundle digest  7 bundle (JSON), or three times '' for none
-- ->    ok 'created'|'found' limits | unsafe policy | taken | collecting
local done = answered(KEYS[3], ARGV[1])
if done then
  return done
end
local tree, process, id = KEYS[1], KEYS[2], ARGV[2]
if redis.call('EXISTS', tree .. ':collecting') == 1 then
  return { 'collecting' }
end
if redis.call('EXISTS', process) == 1 then
  if ARGV[3] == '1' then
    return { 'taken' }
  end
  return { 'ok', 'found', redis.call('HGET', tree, 'limits') }
end

local refused = unsafe(tree)
if refused then
  return refused
end
local now = seconds_now()
redis.call('HSET', tree, 'created_at', stamp(now), 'used_at', stamp(now), 'bytes', 0, 'fds', 0,
  'processes', 1, 'live', 1, 'limits', ARGV[4])
redis.call('HSET', process, 'state', 'open', 'attempt', 0, 'losses', 0, 'next_fd', 1, 'next_child', 1,
  'started_at', stamp(now))
redis.call('ZADD', tree .. ':processes', stamp(now), id)
if ARGV[5] ~= '' then
  redis.call('HSET', process, 'program', ARGV[5], 'bundle', ARGV[6])
  redis.call('HSET', tree .. ':programs', ARGV[6], ARGV[7])
end
return answer(KEYS[3], ARGV[1], { 'ok', 'created', ARGV[4] })
