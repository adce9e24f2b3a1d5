-- Looks descriptors of a process up, with the metadata of their contents: names in order, or these. Reads only.
-- KEYS  1 tree  2 process  3 its fds  4 its names
-- ARGV  1 how many names to examine at most, or 0: look the descriptors 2.. up
--       2 first and 3 last name, as ZRANGEBYLEX takes them
-- ->    ok last {fd, content, metadata or a text that says what is wrong with it, ...}: `last` is the last name
--       examined, '' at the end of the range | gone: nothing was found, and there is no such process
local found, last, fds = {}, '', {}
if ARGV[1] == '0' then
  fds = { unpack(ARGV, 2) }
else
  local keys = redis.call('ZRANGEBYLEX', KEYS[4], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[1])
  for i, key in ipairs(keys) do
    fds[i] = 'name:' .. key
  end
  if #keys == tonumber(ARGV[1]) then
    last = keys[#keys]
  end
end
for _, fd in ipairs(fds) do
  local content = content_of(KEYS[3], fd)
  if content then
    local metadata = 'it is not a content'
    if string.match(content, '^.+/%d+$') then
      metadata = redis.pcall('HGETALL', content_record(KEYS[1], content))
    end
    found[#found + 1] = fd
    found[#found + 1] = content
    found[#found + 1] = metadata.err or metadata
  end
end
if #found == 0 and redis.call('EXISTS', KEYS[2]) == 0 then
  return { 'gone' }
end
return { 'ok', last, found }
