-- Stores a content: one new descriptor of one process, or the new content of a name. Its pages are staged or, if small,
-- arguments.
-- KEYS tree process fd_table staged_pages staged_index answers
-- ARGV op attempt id name chars bytes_now lines page_count page_size source origin seen_fd expected kind media_type
--      split words inline_pages fields...
--   answers       where the reply to `op` is kept
--   name          '' for the next number, ref:NAME, name:KEY
--   origin        origin (JSON or '')
--   seen_fd       the highest number that the client has seen
--   expected      what the name must mean, see `conflict`
--   kind          '' or 'bytes'
--   media_type    media type, '' for the default of the kind
--   split         how many pages are in two fields ('' for none)
--   words         words of the source, and of the name, for search
--   inline_pages  how many fields of pages are arguments: 0 if they are staged
--   fields        of the pages: field, text, ...; then the groups of the index that are not staged: group, value, ...
--                 (bytes have none)
-- ->    ok fd content created_at new (or, of a repeat, ok fd content created_at) | unsafe policy | gone | fenced why | conflict name found
--       | quota_exceeded name limit | lost
local SHORT = 64 -- hash-max-listpack-value of Redis

local done = answered(answers, op, 3)
if done then
  redis.call('UNLINK', staged_pages, staged_index)
  return done
end
local now = seconds_now()
local limits, bytes, fds, checked_at, room, ceiling =
  unpack(redis.call('HMGET', tree, 'limits', 'bytes', 'fds', 'checked_at', 'bytes_room', 'bytes_ceiling'))
local refused = refusal(process, attempt) or unsafe(tree, checked_at, now)
if refused then
  return refused
end
local replaced, freed, freed_bytes = nil, 0, 0
if name ~= '' then
  replaced = content_of(fd_table, name)
  refused = conflict(tree, name, replaced, expected)
  if refused then
    return refused
  end
  freed, freed_bytes = freed_by(tree, replaced)
end
limits, bytes, fds = cjson.decode(limits), bytes + bytes_now, fds + 1
if fds - freed > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
if bytes - freed_bytes > limits.tree_bytes then
  return { 'quota_exceeded', 'tree_bytes', limits.tree_bytes }
end
if room and bytes - freed_bytes > tonumber(room) then
  return { 'quota_exceeded', 'bytes', tonumber(ceiling) }
end
local is_bytes = kind == 'bytes'
local is_staged, first_group = inline_pages == '0', fields_from + 2 * inline_pages
local page_fields = page_count + (tonumber(split) or 0)
local staged_groups = is_bytes and 0 or math.ceil(page_count / GROUP_PAGES) - (#ARGV + 1 - first_group) / 2
if is_staged and redis.call('HLEN', staged_pages) ~= page_fields
  or staged_groups > 0 and redis.call('HLEN', staged_index) ~= staged_groups then
  return { 'lost' }
end

local number = next_number(process, 'next_fd', seen_fd)
local fd = 'fd:' .. number
if name ~= '' then
  fd, number = name, unused_number(process, now)
end
now = stamp(now)
local content = id .. '/' .. number
local record = process .. ':fd:' .. number
local pages, index = record .. ':pages', record .. ':index'
clear_record(record)
add_words(tree, 'source', id .. ' ' .. fd, words, true)
if is_staged then
  redis.call('RENAME', staged_pages, pages)
  redis.call('PERSIST', pages)
else
  redis.call('HSET', pages, 1, '') -- as in `clear_record`
  redis.call('UNLINK', pages)
  redis.call('HSET', pages, unpack(ARGV, fields_from, first_group - 1))
end
if staged_groups > 0 then
  redis.call('RENAME', staged_index, index)
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
redis.call('HSET', record, 'fd', fd, 'state', 'sealed', 'chars', chars, 'bytes', bytes_now, 'lines', lines,
  'pages', page_count, 'page_size', page_size, 'source', source, 'created_at', now, 'producer', id,
  unpack(set_only({ 'origin', origin, 'kind', kind, 'media_type', media_type, 'index', short_index,
    'split', split })))
redis.call('SADD', tree .. ':contents', content)
redis.call('HSET', tree, 'bytes', string.format('%.0f', bytes), 'fds', fds, 'used_at', now)
add_name(process, fd)
redis.call('HSET', fd_table, fd, content)
if replaced then
  release(tree, id, { replaced })
end
local reply = answer(answers, op, { 'ok', fd, content, now })
table.insert(reply, 'new')
return reply
