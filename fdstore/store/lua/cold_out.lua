-- Makes a content cold: its object is complete and compared, so its pages go, in one step that fails if anything
-- changed. The record names the object before the pages go, and the object is not listed for deletion any more
-- after that.
-- KEYS tree content staged_sums
-- ARGV created_at where size_bytes page_count field_count:number sums_length:number untouched_s:number
--   where        its object, listed since before it was uploaded
--   field_count  how many fields the pages have
--   sums_length  bytes of the staged checksums, which end with the index of a text that has one group of it
--   untouched_s  for how many seconds the pages must not have been read; -1: it does not matter
-- ->    ok '1' | ok '0' why
local pages = content .. ':pages'
local function changed(why)
  redis.call('UNLINK', staged_sums)
  return { 'ok', '0', why }
end
if redis.call('EXISTS', tree) == 0 then
  return changed('its tree is gone')
end
local created, state, tier, bytes, count, kind, found =
  unpack(redis.call('HMGET', content, 'created_at', 'state', 'tier', 'bytes', 'pages', 'kind', 'where'))
if created ~= created_at then
  return changed('it is gone')
end
if tier == 'cold' and found == where then -- the reply was lost
  redis.call('UNLINK', staged_sums)
  return { 'ok', '1' }
end
if state ~= 'sealed' or tier or bytes ~= size_bytes or count ~= page_count
  or redis.call('HLEN', pages) ~= field_count or redis.call('EXISTS', content .. ':lent') == 1 then
  return changed('it is another one')
end
local until_ = redis.call('ZSCORE', tree .. ':cold:objects', where)
if not until_ or tonumber(until_) <= seconds_now() then
  return changed('its object is about to be deleted')
end
if redis.call('STRLEN', staged_sums) ~= sums_length then
  return changed('its checksums expired')
end
if untouched_s >= 0 then
  local idle_s = redis.pcall('OBJECT', 'IDLETIME', pages)
  if type(idle_s) == 'number' and idle_s < untouched_s then
    return changed('it was read')
  end
end
redis.call('RENAME', staged_sums, content .. ':sums')
redis.call('PERSIST', content .. ':sums')
redis.call('HDEL', content, 'tail')
count_cold(tree, 1, counted(bytes))
redis.call('HSET', content, 'tier', 'cold', 'where', where)
redis.call('UNLINK', pages, content .. ':reads')
if kind ~= 'bytes' and counted(count) <= GROUP_PAGES then
  redis.call('UNLINK', content .. ':index')
end
redis.call('ZREM', tree .. ':cold:objects', where)
return { 'ok', '1' }
