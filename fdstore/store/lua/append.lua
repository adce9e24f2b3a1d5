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
-- KEYS tree process content page_hash index calls lent
-- ARGV call attempt content_id fd by lease_s chars_before chars_now bytes_now lines_now pages_now tail_now kind
--      page_size media_type index_values:number changes...
--   calls         the calls of the process
--   lent          the key that holds its pages during a large append
--   call          call or ''
--   by            the writer
--   lease_s       seconds of its lease or ''
--   chars_before  characters before the piece
--   pages_now     the totals with the piece
--   tail_now      bytes of the last page
--   kind          'bytes', or '' for text
--   index_values  how many of the changes are of the index; -1 in the first call of two
--   changes       the index that changes: group, value, ...; then the pages that do: number, text, ...
-- ->    ok | unsafe policy | gone | fenced why | stream_closed fd state | quota_exceeded name limit
--       | lost_data fd pages | no: the second call, after the first refused
local decides = index_values < 0
local first = changes_from + math.max(index_values, 0)
local tells = not decides and not ARGV[first]
local is_first, is_bytes = chars_before == '0', kind == 'bytes'
local record, now = content, seconds_now()
local bytes, leased, tree_bytes, there
if tells then
  there = redis.pcall('HLEN', page_hash)
  if type(there) ~= 'number' or there == 0 or redis.call('EXISTS', lent) == 1 then
    return { 'no' }
  end
  bytes, leased = unpack(redis.call('HMGET', record, 'bytes', 'writer_until'))
  tree_bytes = redis.call('HGET', tree, 'bytes') + bytes_now - bytes
else
  if call ~= '' and answered(calls, call, 0) then
    return { 'ok' }
  end
  local refused = refusal(process, attempt)
  if refused then
    return refused
  end
  local state, chars, pages, writer, reason, producer
  state, chars, bytes, pages, writer, leased, reason, producer = unpack(
    redis.call('HMGET', record, 'state', 'chars', 'bytes', 'pages', 'writer', 'writer_until', 'reason', 'producer'))
  if state == 'broken' and reason == QUOTA_EXCEEDED then
    return { 'quota_exceeded', 'tree_bytes', limits_of(tree).tree_bytes }
  end
  if state ~= 'open' then
    return { 'stream_closed', fd, state or 'closed' }
  end
  if process_record(tree, producer) ~= process or leased and leased ~= '' and writer ~= by then
    return { 'fenced', fd .. ' has another writer' }
  end
  local stored = chars == chars_now and (writer == by or chars_before == chars_now)
  if not stored and chars ~= chars_before then
    local counted_in = is_bytes and ' bytes, not ' or ' characters, not '
    return { 'fenced', fd .. ' has ' .. chars .. counted_in .. chars_before .. ': another writer appended' }
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
  tree_bytes = tree_bytes + (stored and 0 or bytes_now - bytes)
  if not stored and tree_bytes > limit then
    end_stream(tree, content_id, 'broken', '', QUOTA_EXCEEDED)
    return { 'quota_exceeded', name, name == 'bytes' and tonumber(ceiling) or limit }
  end
  if stored then
    redis.call('HSET', tree, 'used_at', stamp(now))
    if leased and leased ~= '' then
      redis.call('HSET', record, 'writer_until', stamp(now + lease_s))
    end
    return { 'ok' }
  end
  local key
  there, key = stored_pages(page_hash, lent)
  if there < tonumber(pages) then
    return { 'lost_data', fd, there }
  end
  if key ~= page_hash then
    redis.call('RENAME', key, page_hash)
  end
  if decides then
    return { 'ok' }
  end
end

for i = first, #ARGV, 2000 do -- Lua's stack holds a few thousand values
  redis.call('HSET', page_hash, unpack(ARGV, i, math.min(i + 1999, #ARGV)))
end
if index_values > 0 then
  redis.call('HSET', index, unpack(ARGV, changes_from, first - 1))
end
redis.call('HSET', tree, 'bytes', tree_bytes, 'used_at', stamp(now))
local more = leased and leased ~= '' and { 'writer_until', stamp(now + lease_s) } or {}
if is_first then
  -- for text too: they overwrite those of a torn piece of bytes
  for _, part in ipairs({ 'kind', kind, 'page_size', page_size, 'media_type', media_type }) do
    more[#more + 1] = part
  end
end
redis.call('HSET', record, 'state', 'open', 'chars', chars_now, 'bytes', bytes_now, 'lines', lines_now,
  'pages', pages_now, 'tail', tail_now, 'writer', by, unpack(more))
if is_bytes then
  redis.call('UNLINK', index) -- that of the empty text; not before the kind is written
elseif is_first then
  redis.call('HDEL', record, 'kind', 'media_type') -- as in a text created whole
end
wake_readers(record, chars_now .. '-1', 'chars', chars_now)
for number = pages_now + 1, math.min(there, pages_now + 2000) do
  redis.call('HDEL', page_hash, string.format('%d', number)) -- left by a longer, torn piece
end
if call ~= '' then
  return answer(calls, call, { 'ok' })
end
return { 'ok' }
