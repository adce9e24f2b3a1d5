-- Makes staged pages those of a cold content again. Its object is listed for deletion first: the sweep deletes none
-- that a record names, so that a torn log loses no text.
-- KEYS tree content staged_pages
-- ARGV created_at where first_group field_count:number kept_s:number
--   where        the object of which the pages are
--   first_group  the index, if it was with the checksums, or ''
--   field_count  how many fields were staged
--   kept_s       how long the object is kept for those who are reading it
-- ->    ok '1'|'0': whether the content is still the same one, and cold
local created, tier, found, bytes = unpack(redis.call('HMGET', content, 'created_at', 'tier', 'where', 'bytes'))
if created ~= created_at or tier ~= 'cold' or found ~= where or redis.call('EXISTS', tree) == 0
  or redis.call('HLEN', staged_pages) ~= field_count then
  redis.call('UNLINK', staged_pages)
  return { 'ok', '0' }
end
if first_group ~= '' and redis.call('HEXISTS', content, 'index') == 0 then
  redis.call('HSET', content .. ':index', 1, first_group)
end
redis.call('RENAME', staged_pages, content .. ':pages')
redis.call('PERSIST', content .. ':pages')
list_object(tree, where, kept_s)
redis.call('HDEL', content, 'tier', 'where')
redis.call('UNLINK', content .. ':sums', content .. ':reads')
count_cold(tree, -1, -counted(bytes))
return { 'ok', '1' }
