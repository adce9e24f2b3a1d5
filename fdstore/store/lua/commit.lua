-- Stores a content: one new descriptor of one process, or the new content of a name. Its pages are staged or, if small,
-- arguments.
-- KEYS  1 tree  2 process  3 its fds  4 staged pages  5 staged index  6 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 name ('' for the next number, ref:NAME, name:KEY)
--       5 chars  6 bytes  7 lines  8 pages  9 page_size  10 source  11 origin (JSON or '')
--       12 the highest number that the client has seen  13 what the name must mean, see `conflict`
--       14 kind: '' or 'bytes'  15 media type, '' for the default of the kind
--       16 how many pages are in two fields ('' for none)
--       17 words of the source, and of the name, for search
--       18 how many fields of pages are arguments: 0 if they are staged  19.. fields and texts
--       .. the groups of the index that are not staged: group, value, ... (bytes have none)
-- ->    ok fd content created_at new (or, of a repeat, ok fd content created_at) | unsafe policy | gone | fenced why | conflict name found
--       | quota_exceeded name limit | lost
local SHORT = 64 -- hash-max-listpack-value of Redis

local done = answered(KEYS[6], ARGV[1], 3)
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
local replaced, freed, freed_bytes = nil, 0, 0
if ARGV[4] ~= '' then
  replaced = content_of(KEYS[3], ARGV[4])
  refused = conflict(tree, ARGV[4], replaced, ARGV[13])
  if refused then
    return refused
  end
  freed, freed_bytes = freed_by(tree, replaced)
end
limits, bytes, fds = cjson.decode(limits), bytes + ARGV[6], fds + 1
if fds - freed > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
if bytes - freed_bytes > limits.tree_bytes then
  return { 'quota_exceeded', 'tree_bytes', limits.tree_bytes }
end
if room and bytes - freed_bytes > tonumber(room) then
  return { 'quota_exceeded', 'bytes', tonumber(ceiling) }
end
local is_bytes = ARGV[14] == 'bytes'
local is_staged, first_group = ARGV[18] == '0', 19 + 2 * ARGV[18]
local page_fields = ARGV[8] + (tonumber(ARGV[16]) or 0)
local staged_groups = is_bytes and 0 or math.ceil(ARGV[8] / GROUP_PAGES) - (#ARGV + 1 - first_group) / 2
if is_staged and redis.call('HLEN', KEYS[4]) ~= page_fields
  or staged_groups > 0 and redis.call('HLEN', KEYS[5]) ~= staged_groups then
  return { 'lost' }
end

local number = next_number(KEYS[2], 'next_fd', ARGV[12])
local fd = 'fd:' .. number
if ARGV[4] ~= '' then
  fd, number = ARGV[4], unused_number(KEYS[2], now)
end
now = stamp(now)
local content = id .. '/' .. number
local record = KEYS[2] .. ':fd:' .. number
local pages, index = record .. ':pages', record .. ':index'
clear_record(record)
add_words(tree, 'source', id .. ' ' .. fd, ARGV[17])
if is_staged then
  redis.call('RENAME', KEYS[4], pages)
  redis.call('PERSIST', pages)
else
  redis.call('HSET', pages, 1, '') -- as in `clear_record`
  redis.call('UNLINK', pages)
  redis.call('HSET', pages, unpack(ARGV, 19, first_group - 1))
end
if staged_groups > 0 then
  redis.call('RENAME', KEYS[5], index)
  redis.call('PERSIST', index)
end
-- A key takes more memory than a short index, which is a field of the record; above SHORT bytes, a field would turn the
-- whole record into a hash table.
local short_index = ''
if #ARGV == first_group + 1 and ARGV[first_group] == '1' and #ARGV[#ARGV] <= SHORT then
  short_index = ARGV[#ARGV]
elseif ARGV[first_group] then
  redis.call('HSET', index, unpack(ARGV, first_group))
end
redis.call('HSET', record, 'fd', fd, 'state', 'sealed', 'chars', ARGV[5], 'bytes', ARGV[6], 'lines', ARGV[7],
  'pages', ARGV[8], 'page_size', ARGV[9], 'source', ARGV[10], 'created_at', now, 'producer', id,
  unpack(set_only({ 'origin', ARGV[11], 'kind', ARGV[14], 'media_type', ARGV[15], 'index', short_index,
    'split', ARGV[16] })))
redis.call('SADD', tree .. ':contents', content)
redis.call('HSET', tree, 'bytes', string.format('%.0f', bytes), 'fds', fds, 'used_at', now)
add_name(KEYS[2], fd)
redis.call('HSET', KEYS[3], fd, content)
if replaced then
  release(tree, id, { replaced })
end
local reply = answer(KEYS[6], ARGV[1], { 'ok', fd, content, now })
table.insert(reply, 'new')
return reply
