-- Makes a staged content visible: one new descriptor of one process.
-- KEYS  1 tree  2 process  3 its fds  4 staged pages  5 staged index  6 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 name ('' for the next number, or ref:NAME)
--       5 chars  6 bytes  7 lines  8 pages  9 page_size  10 source  11 origin (JSON or '')
-- ->    ok fd content created_at | unsafe policy | gone | fenced why | quota_exceeded name limit | lost
local done = answered(KEYS[6], ARGV[1])
if done then
  redis.call('UNLINK', KEYS[4], KEYS[5])
  return done
end
local refused = refusal(KEYS[2], ARGV[2]) or unsafe(KEYS[1])
if refused then
  return refused
end
local tree, id = KEYS[1], ARGV[3]
local limits = limits_of(tree)
local bytes, fds = unpack(redis.call('HMGET', tree, 'bytes', 'fds'))
if fds + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
if bytes + ARGV[6] > limits.tree_bytes then
  return { 'quota_exceeded', 'tree_bytes', limits.tree_bytes }
end
if redis.call('HLEN', KEYS[4]) ~= tonumber(ARGV[8]) or redis.call('EXISTS', KEYS[5]) == 0 then
  return { 'lost' }
end

local now = stamp(seconds_now())
local number = next_number(KEYS[2], 'next_fd')
local content = id .. '/' .. number
local record = content_record(tree, content)
local fd = ARGV[4] ~= '' and ARGV[4] or 'fd:' .. number
local replaced = redis.call('HGET', KEYS[3], fd)
redis.call('RENAME', KEYS[4], record .. ':pages')
redis.call('PERSIST', record .. ':pages')
redis.call('RENAME', KEYS[5], record .. ':index')
redis.call('PERSIST', record .. ':index')
redis.call('HSET', record, 'fd', fd, 'state', 'sealed', 'chars', ARGV[5], 'bytes', ARGV[6], 'lines', ARGV[7],
  'pages', ARGV[8], 'page_size', ARGV[9], 'source', ARGV[10], 'created_at', now, 'producer', id)
if ARGV[11] ~= '' then
  redis.call('HSET', record, 'origin', ARGV[11])
end
redis.call('SADD', tree .. ':contents', content)
redis.call('HINCRBY', tree, 'bytes', ARGV[6])
redis.call('HINCRBY', tree, 'fds', 1)
redis.call('HSET', tree, 'used_at', now)
hold(tree, id, fd, content)
if replaced then
  release(tree, id, { replaced })
end
return answer(KEYS[6], ARGV[1], { 'ok', fd, content, now })
