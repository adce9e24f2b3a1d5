-- Makes a staged content visible: one new descriptor of one process.
-- KEYS  1 tree  2 process  3 its fds  4 staged pages  5 staged index  6 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 name ('' for the next number, or ref:NAME)
--       5 chars  6 bytes  7 lines  8 pages  9 page_size  10 source  11 origin (JSON or '')
--       12 the highest number that the client has seen
--       13.. the groups of the index that are not staged: group, value, ...
-- ->    ok fd content created_at | unsafe policy | gone | fenced why | quota_exceeded name limit | lost
local done = answered(KEYS[6], ARGV[1])
if done then
  redis.call('UNLINK', KEYS[4], KEYS[5])
  return done
end
local tree, id, now = KEYS[1], ARGV[3], seconds_now()
local limits, bytes, fds, checked_at, room, ceiling =
  unpack(redis.call('HMGET', tree, 'limits', 'bytes', 'fds', 'checked_at', 'bytes_room', 'bytes_ceiling'))
local refused = refusal(KEYS[2], ARGV[2]) or unsafe(tree, checked_at, now)
if refused then
  return refused
end
limits, bytes, fds = cjson.decode(limits), bytes + ARGV[6], fds + 1
if fds > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
if bytes > limits.tree_bytes then
  return { 'quota_exceeded', 'tree_bytes', limits.tree_bytes }
end
if room and bytes > tonumber(room) then
  return { 'quota_exceeded', 'bytes', tonumber(ceiling) }
end
local staged_groups = math.ceil(ARGV[8] / GROUP_PAGES) - (#ARGV - 12) / 2
if redis.call('HLEN', KEYS[4]) ~= tonumber(ARGV[8])
  or staged_groups > 0 and redis.call('HLEN', KEYS[5]) ~= staged_groups then
  return { 'lost' }
end

now = stamp(now)
local number = next_number(KEYS[2], 'next_fd', ARGV[12])
local content = id .. '/' .. number
local record = KEYS[2] .. ':fd:' .. number
local pages, index = record .. ':pages', record .. ':index'
local fd, replaced = 'fd:' .. number, false
if ARGV[4] ~= '' then
  fd = ARGV[4]
  replaced = redis.call('HGET', KEYS[3], fd)
end
redis.call('RENAME', KEYS[4], pages)
redis.call('PERSIST', pages)
if staged_groups > 0 then
  redis.call('RENAME', KEYS[5], index)
  redis.call('PERSIST', index)
end
if ARGV[13] then
  redis.call('HSET', index, unpack(ARGV, 13))
end
redis.call('HSET', record, 'fd', fd, 'state', 'sealed', 'chars', ARGV[5], 'bytes', ARGV[6], 'lines', ARGV[7],
  'pages', ARGV[8], 'tail', '', 'page_size', ARGV[9], 'source', ARGV[10], 'created_at', now, 'producer', id,
  unpack(ARGV[11] ~= '' and { 'origin', ARGV[11] } or {}))
redis.call('SADD', tree .. ':contents', content)
redis.call('HSET', tree, 'bytes', string.format('%.0f', bytes), 'fds', fds, 'used_at', now)
-- as `hold`, but both keys are known here
redis.call('SADD', record .. ':holders', id)
redis.call('HSET', KEYS[3], fd, content)
if replaced then
  release(tree, id, { replaced })
end
return answer(KEYS[6], ARGV[1], { 'ok', fd, content, now })
