-- Lists names of a process in order, with the metadata of their contents. Reads only.
-- KEYS  1 tree  2 the process's fds  3 its names
-- ARGV  1 first and 2 last name, as ZRANGEBYLEX takes them  3 how many at most
-- ->    ok last {name, content, metadata, ...}: `last` is the last name examined, '' at the end of the range
local found, last = {}, ''
local keys = redis.call('ZRANGEBYLEX', KEYS[3], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
for _, key in ipairs(keys) do
  local content = content_of(KEYS[2], 'name:' .. key)
  if content then
    found[#found + 1] = 'name:' .. key
    found[#found + 1] = content
    found[#found + 1] = string.match(content, '^.+/%d+$') and redis.pcall('HGETALL', content_record(KEYS[1], content))
      or {}
  end
end
if #keys == tonumber(ARGV[3]) then
  last = keys[#keys]
end
return { 'ok', last, found }
