-- Makes staged pages, and the index staged beside them, those of a cold content again. Its object is listed for
-- deletion first: the sweep deletes none that a record names, so that a torn log loses no text.
-- KEYS tree content staged_pages
-- ARGV created_at where field_count:number kept_s:number
--   where        the object of which the pages are
--   field_count  how many fields of pages were staged
--   kept_s       how long the object is kept for those who are reading it
-- ->    ok '1'|'0': whether the content is still the same one, and cold
local staged_index = string.sub(staged_pages, 1, -#'pages' - 1) .. 'index'
local created, tier, found, bytes, count, kind, short =
  unpack(redis.call('HMGET', content, 'created_at', 'tier', 'where', 'bytes', 'pages', 'kind', 'index'))
local groups = kind ~= 'bytes' and not short and math.ceil(counted(count) / GROUP_PAGES) or 0
if created ~= created_at or tier ~= 'cold' or found ~= where or redis.call('EXISTS', tree) == 0
  or redis.call('HLEN', staged_pages) ~= field_count or redis.call('HLEN', staged_index) ~= groups then
  redis.call('UNLINK', staged_pages, staged_index)
  return { 'ok', '0' }
end
if groups > 0 then
  redis.call('RENAME', staged_index, content .. ':index')
  redis.call('PERSIST', content .. ':index')
end
redis.call('RENAME', staged_pages, content .. ':pages')
redis.call('PERSIST', content .. ':pages')
list_object(tree, where, kept_s)
redis.call('HDEL', content, 'tier', 'where')
redis.call('UNLINK', content .. ':sums', content .. ':reads')
count_cold(tree, -1, -counted(bytes))
return { 'ok', '1' }
