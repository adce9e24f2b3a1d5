-- Makes an empty content in state `open`: a stream.
-- KEYS  1 tree  2 process  3 its fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 page_size  5 source  6 the writer
--       7 seconds of its lease, or '' when the process itself is the writer  8 the index of an empty text
-- ->    ok fd content | gone | fenced why | quota_exceeded name limit
local done = answered(KEYS[4], ARGV[1])
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
local tree, id = KEYS[1], ARGV[3]
local limits = limits_of(tree)
if redis.call('HGET', tree, 'fds') + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end

local now = seconds_now()
local number = next_number(KEYS[2], 'next_fd')
local fd = 'fd:' .. number
local content = id .. '/' .. number
local record = content_record(tree, content)
redis.call('HSET', record .. ':pages', 1, '')
redis.call('HSET', record .. ':index', 1, ARGV[8])
redis.call('HSET', record, 'fd', fd, 'state', 'open', 'chars', 0, 'bytes', 0, 'lines', 0, 'pages', 1,
  'page_size', ARGV[4], 'source', ARGV[5], 'created_at', stamp(now), 'producer', id, 'writer', ARGV[6])
if ARGV[7] ~= '' then
  redis.call('HSET', record, 'writer_until', stamp(now + ARGV[7]))
end
redis.call('SADD', tree .. ':contents', content)
redis.call('ZADD', tree .. ':writers', stamp(now + writer_left(record)), content)
redis.call('HINCRBY', tree, 'fds', 1)
redis.call('HSET', tree, 'used_at', stamp(now))
hold(tree, id, fd, content)
return answer(KEYS[4], ARGV[1], { 'ok', fd, content })
