-- Adds a piece to a stream: rewrites its last page, adds those after it, moves the totals, wakes readers.
-- Asked again it answers again: the piece is known by its writer and by where it ends.
-- KEYS  1 tree  2 process  3 content  4 its pages  5 its index  6 its events
--       7 the calls of the process
-- ARGV  1 call or ''  2 attempt  3 content id  4 fd  5 the writer  6 seconds of its lease or ''
--       7 characters before the piece  8 chars  9 bytes  10 lines  11 pages: the totals with it
--       12 first page that changes  13 how many pages follow
--       14.. the texts of these pages, then the changed index: group, value, group, value, ...
-- ->    ok | gone | fenced why | stream_closed fd state | quota_exceeded name limit
if ARGV[1] ~= '' and answered(KEYS[7], ARGV[1]) then
  return { 'ok' }
end
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
local tree, record = KEYS[1], KEYS[3]
local state, chars, bytes, writer, leased, reason, producer =
  unpack(redis.call('HMGET', record, 'state', 'chars', 'bytes', 'writer', 'writer_until', 'reason', 'producer'))
if state == 'broken' and reason == 'quota_exceeded' then
  return { 'quota_exceeded', 'tree_bytes', limits_of(tree).tree_bytes }
end
if state ~= 'open' then
  return { 'stream_closed', ARGV[4], state or 'closed' }
end
if process_record(tree, producer) ~= KEYS[2] or leased and writer ~= ARGV[5] then
  return { 'fenced', ARGV[4] .. ' has another writer' }
end
local stored = chars == ARGV[8] and writer == ARGV[5]
if not stored and chars ~= ARGV[7] then
  return { 'fenced', ARGV[4] .. ' has ' .. chars .. ' characters, not ' .. ARGV[7] .. ': somebody else writes it' }
end
local limit = limits_of(tree).tree_bytes
local tree_bytes = redis.call('HGET', tree, 'bytes') + (stored and 0 or ARGV[9] - bytes)
if not stored and tree_bytes > limit then
  end_stream(tree, ARGV[3], 'broken', '', 'quota_exceeded')
  return { 'quota_exceeded', 'tree_bytes', limit }
end

local now = seconds_now()
redis.call('HSET', tree, 'bytes', tree_bytes, 'used_at', stamp(now))
if leased then
  redis.call('HSET', record, 'writer_until', stamp(now + ARGV[6]))
end
if stored then
  return { 'ok' }
end

local page, count = tonumber(ARGV[12]), tonumber(ARGV[13])
local fields = {}
for i = 0, count - 1 do
  fields[#fields + 1] = page + i
  fields[#fields + 1] = ARGV[14 + i]
  if #fields == 2000 then -- Lua's stack holds some thousands
    redis.call('HSET', KEYS[4], unpack(fields))
    fields = {}
  end
end
if #fields > 0 then
  redis.call('HSET', KEYS[4], unpack(fields))
end
redis.call('HSET', KEYS[5], unpack(ARGV, 14 + count))
redis.call('HSET', record, 'chars', ARGV[8], 'bytes', ARGV[9], 'lines', ARGV[10], 'pages', ARGV[11])
if writer ~= ARGV[5] then
  redis.call('HSET', record, 'writer', ARGV[5])
end
redis.call('XADD', KEYS[6], 'MAXLEN', 1, ARGV[8] .. '-1', 'chars', ARGV[8])
if ARGV[1] ~= '' then
  return answer(KEYS[7], ARGV[1], { 'ok' })
end
return { 'ok' }
