-- Looks descriptors of a process up, with the metadata of their contents: names in order, or these. Reads only.
-- KEYS tree process fd_table names_index
-- ARGV most_names:number first_name last_name lookups...
--   most_names   how many names to examine at most, or 0: look the descriptors `lookups` up
--   first_name   first and last name, as ZRANGEBYLEX takes them
-- ->    ok last {fd, content, metadata or a text that says what is wrong with it, ...}: `last` is the last name
--       examined, '' at the end of the range | gone: nothing was found, and there is no such process
local found, last, fds = {}, '', {}
if most_names == 0 then
  fds = { unpack(ARGV, lookups_from) }
else
  local keys = redis.call('ZRANGEBYLEX', names_index, first_name, last_name, 'LIMIT', 0, most_names)
  for i, key in ipairs(keys) do
    fds[i] = 'name:' .. key
  end
  if #keys == most_names then
    last = keys[#keys]
  end
end
for _, fd in ipairs(fds) do
  local content = content_of(fd_table, fd)
  if content then
    local metadata = 'it is not a content'
    if string.match(content, '^.+/%d+$') then
      metadata = redis.pcall('HGETALL', content_record(tree, content))
    end
    found[#found + 1] = fd
    found[#found + 1] = content
    found[#found + 1] = metadata.err or metadata
  end
end
if #found == 0 and redis.call('EXISTS', process) == 0 then
  return { 'gone' }
end
return { 'ok', last, found }
