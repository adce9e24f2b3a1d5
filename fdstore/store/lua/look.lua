-- Finds what a descriptor means, and in the same round trip what a reader wants of it. Reads only.
-- KEYS  1 tree  2 the process's fds  3 the content's record, if it is the one expected
-- ARGV  1 fd  2 page to return (0 for none)
--       3 content that the reader expects ('' for none): it fetches that by itself, at less cost than
--         through a script, and needs no more than the confirmation
--       4 'newlines'|'chars' (not given with a page): bisect the index for 5 first and 6 last position
--         in that unit
-- ->    nothing: it is as expected, and not open | not_found id known...
--       | ok content metadata page-text|false {group name, group value, ...}, and of an open content its last
--       page's text and the seconds its writer has left
local content = redis.call('HGET', KEYS[2], ARGV[1])
if content == ARGV[3] and redis.call('HGET', KEYS[3], 'state') ~= 'open' then
  return
end
-- common.lua
if not content then
  return not_found(KEYS[2], ARGV[1])
end
local record = content_record(KEYS[1], content)
local index = record .. ':index'
local pages = tonumber(redis.call('HGET', record, 'pages') or 0)
local wanted = tonumber(ARGV[2])
local groups = {}

local function add(first)
  local name = string.format('%d', first)
  if groups[#groups - 1] ~= name then
    groups[#groups + 1] = name
    groups[#groups + 1] = redis.call('HGET', index, name)
  end
end

-- The first page of the last group that begins before `position`.
local function group_before(part, position)
  local low, high = 0, math.floor((pages - 1) / 256)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local value = redis.call('HGET', index, string.format('%d', middle * 256 + 1))
    local newlines, chars = string.match(value, '^(%d+) (%d+)')
    local start = tonumber(part == 'newlines' and newlines or chars)
    if start < position then
      low = middle
    else
      high = middle - 1
    end
  end
  return low * 256 + 1
end

local text = false
if wanted > 0 and wanted <= pages then
  text = redis.call('HGET', record .. ':pages', ARGV[2])
  add(math.floor((wanted - 1) / 256) * 256 + 1)
elseif ARGV[4] then
  add(group_before(ARGV[4], tonumber(ARGV[5])))
  add(group_before(ARGV[4], tonumber(ARGV[6])))
end
if redis.call('HGET', record, 'state') == 'open' then
  local last = redis.call('HGET', record .. ':pages', string.format('%d', pages))
  return { 'ok', content, redis.call('HGETALL', record), text, groups, last, stamp(writer_left(record)) }
end
return { 'ok', content, redis.call('HGETALL', record), text, groups }
