-- Appends a piece to a stream: rewrites its last page, adds new pages, updates the totals, wakes readers.
-- Idempotent: a repeated piece is recognized by its writer and its end. A piece without text renews the lease.
--
-- A long piece is stored between two calls in one transaction, see `scripts.hset_if_accepted`: the first call,
-- without an index, accepts or refuses it, and moves pages back that a torn log left aside; the second call,
-- without pages, does everything else.
--
-- The first piece decides whether a stream holds text or bytes: it writes the kind with the totals. Of bytes,
-- positions, and `chars` of the record, count bytes, and it has no index.
--
-- The totals are written after everything they count, in one command. Readers trust them: bytes of the pages
-- beyond the totals (`tail` is the bytes of the last page) belong to a torn piece, see common.lua.
-- KEYS  1 tree  2 process  3 content  4 its pages  5 its index
--       6 the calls of the process  7 the key that holds its pages during a large append
-- ARGV  1 call or ''  2 attempt  3 content id  4 fd  5 the writer  6 seconds of its lease or ''
--       7 characters before the piece  8 chars  9 bytes  10 lines  11 pages: the totals with it
--       12 bytes of the last page  13 'bytes', or '' for text  14 page size  15 media type or ''
--       16 where the index ends among these; 0 in the first call of two
--       17.. the index that changes: group, value, ...; then the pages that do: number, text, ...
-- ->    ok | unsafe policy | gone | fenced why | stream_closed fd state | quota_exceeded name limit
--       | lost_data fd pages | no: the second call, after the first refused
local first = ARGV[16] + 1
local decides, tells = first == 1, first > 1 and not ARGV[first]
local is_first, is_bytes = ARGV[7] == '0', ARGV[13] == 'bytes'
local tree, record, now = KEYS[1], KEYS[3], seconds_now()
local bytes, leased, tree_bytes, there
if tells then
  there = redis.pcall('HLEN', KEYS[4])
  if type(there) ~= 'number' or there == 0 or redis.call('EXISTS', KEYS[7]) == 1 then
    return { 'no' }
  end
  bytes, leased = unpack(redis.call('HMGET', record, 'bytes', 'writer_until'))
  tree_bytes = redis.call('HGET', tree, 'bytes') + ARGV[9] - bytes
else
  if ARGV[1] ~= '' and answered(KEYS[6], ARGV[1], 0) then
    return { 'ok' }
  end
  local refused = refusal(KEYS[2], ARGV[2])
  if refused then
    return refused
  end
  local state, chars, pages, writer, reason, producer
  state, chars, bytes, pages, writer, leased, reason, producer = unpack(
    redis.call('HMGET', record, 'state', 'chars', 'bytes', 'pages', 'writer', 'writer_until', 'reason', 'producer'))
  if state == 'broken' and reason == 'quota_exceeded' then
    return { 'quota_exceeded', 'tree_bytes', limits_of(tree).tree_bytes }
  end
  if state ~= 'open' then
    return { 'stream_closed', ARGV[4], state or 'closed' }
  end
  if process_record(tree, producer) ~= KEYS[2] or leased and leased ~= '' and writer ~= ARGV[5] then
    return { 'fenced', ARGV[4] .. ' has another writer' }
  end
  local stored = chars == ARGV[8] and (writer == ARGV[5] or ARGV[7] == ARGV[8])
  if not stored and chars ~= ARGV[7] then
    local counted_in = is_bytes and ' bytes, not ' or ' characters, not '
    return { 'fenced', ARGV[4] .. ' has ' .. chars .. counted_in .. ARGV[7] .. ': another writer appended' }
  end
  local limits, checked_at, room, ceiling
  limits, tree_bytes, checked_at, room, ceiling =
    unpack(redis.call('HMGET', tree, 'limits', 'bytes', 'checked_at', 'bytes_room', 'bytes_ceiling'))
  refused = not stored and unsafe(tree, checked_at)
  if refused then
    return refused
  end
  local limit, name = cjson.decode(limits).tree_bytes, 'tree_bytes'
  if room and tonumber(room) < limit then
    limit, name = tonumber(room), 'bytes'
  end
  tree_bytes = tree_bytes + (stored and 0 or ARGV[9] - bytes)
  if not stored and tree_bytes > limit then
    end_stream(tree, ARGV[3], 'broken', '', 'quota_exceeded')
    return { 'quota_exceeded', name, name == 'bytes' and tonumber(ceiling) or limit }
  end
  if stored then
    redis.call('HSET', tree, 'used_at', stamp(now))
    if leased and leased ~= '' then
      redis.call('HSET', record, 'writer_until', stamp(now + ARGV[6]))
    end
    return { 'ok' }
  end
  local key
  there, key = stored_pages(KEYS[4], KEYS[7])
  if there < tonumber(pages) then
    return { 'lost_data', ARGV[4], there }
  end
  if key ~= KEYS[4] then
    redis.call('RENAME', key, KEYS[4])
  end
  if decides then
    return { 'ok' }
  end
end

for i = first, #ARGV, 2000 do -- Lua's stack holds a few thousand values
  redis.call('HSET', KEYS[4], unpack(ARGV, i, math.min(i + 1999, #ARGV)))
end
if first > 17 then
  redis.call('HSET', KEYS[5], unpack(ARGV, 17, first - 1))
end
redis.call('HSET', tree, 'bytes', tree_bytes, 'used_at', stamp(now))
local more = leased and leased ~= '' and { 'writer_until', stamp(now + ARGV[6]) } or {}
if is_first then
  -- for text too: they overwrite those of a torn piece of bytes
  for _, part in ipairs({ 'kind', ARGV[13], 'page_size', ARGV[14], 'media_type', ARGV[15] }) do
    more[#more + 1] = part
  end
end
redis.call('HSET', record, 'state', 'open', 'chars', ARGV[8], 'bytes', ARGV[9], 'lines', ARGV[10],
  'pages', ARGV[11], 'tail', ARGV[12], 'writer', ARGV[5], unpack(more))
if is_bytes then
  redis.call('UNLINK', KEYS[5]) -- that of the empty text; not before the kind is written
elseif is_first then
  redis.call('HDEL', record, 'kind', 'media_type') -- as in a text created whole
end
wake_readers(record, ARGV[8] .. '-1', 'chars', ARGV[8])
for number = ARGV[11] + 1, math.min(there, ARGV[11] + 2000) do
  redis.call('HDEL', KEYS[4], string.format('%d', number)) -- left by a longer, torn piece
end
if ARGV[1] ~= '' then
  return answer(KEYS[6], ARGV[1], { 'ok' })
end
return { 'ok' }
