-- Resolves a descriptor, and returns the metadata and index fields that a reader needs. Reads only.
-- KEYS tree fd_table expected_record
-- ARGV fd wanted:number expected unit first_position:number last_position:number
--   fd_table         the process's fds
--   expected_record  the record of the expected content
--   wanted           page to return (0 for none)
--   expected         the content that the reader expects ('' for none): it fetches that directly, which is cheaper
--                    than through a script, and only needs the confirmation
--   unit             'newlines'|'chars': bisect the index for the first and last position in that unit; 'bytes': find
--                    the pages that hold these bytes of a text, counted from 0 (of a cold one, the rows of the index,
--                    or all pages if its index is with its checksums); '' with a page
-- ->    nothing: it is the expected content, and not open | not_found id known...
--       | ok content metadata page-text|false {group name, group value, ...}; with 'bytes', in place of a page's
--       text: 'first page, bytes before it, last page', or '' past the end; for an open content also the text of
--       its last page and the seconds until its writer's lease expires; then 'torn' for any stream whose pages and
--       index may hold more than its totals count: use the last page returned here
--       | lost_data fd pages | lent content: its pages are under `lent`, `restore_pages` moves them back
local content = redis.call('HGET', fd_table, fd)
if content == '' and string.sub(fd, 1, 5) == 'name:' then -- left by a torn rename
  content = false
end

-- Whether the pages of a stream match its totals. Only a torn log can make them differ.
local function is_whole(record, count, tail)
  local stored = redis.pcall('HLEN', record .. ':pages')
  return stored == tonumber(count) and redis.call('HSTRLEN', record .. ':pages', count) == tonumber(tail)
end

if content == expected then
  local state, count, tail = unpack(redis.call('HMGET', expected_record, 'state', 'pages', 'tail'))
  if state ~= 'open' and ((tail or '') == '' or is_whole(expected_record, count, tail)) then
    return
  end
end
-- common.lua
if not content then
  return not_found(fd_table, fd)
end
local record = content_record(tree, content)
local index = record .. ':index'
local state, count, tail, size, kind =
  unpack(redis.call('HMGET', record, 'state', 'pages', 'tail', 'bytes', 'kind'))
local pages = counted(count)
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
  local low, high = 0, math.floor((pages - 1) / GROUP_PAGES)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local value = redis.call('HGET', index, string.format('%d', middle * GROUP_PAGES + 1))
    local newlines, chars = string.match(value, '^(%d+) (%d+)')
    local start = tonumber(part == 'newlines' and newlines or chars)
    if start < position then
      low = middle
    else
      high = middle - 1
    end
  end
  return low * GROUP_PAGES + 1
end

-- The bytes before a group, and those of its rows, as text; nil for a short index.
local function sizes_of(group)
  local value = redis.call('HGET', index, string.format('%d', group * GROUP_PAGES + 1))
  -- a short index is in the record, and has none; the last row has at most 400 characters
  return string.match(string.sub(value or '', -400), '\nb([%d ]+)$')
end

-- A page, which may be in two fields, the first with this many bytes more at its end: see page_fields.py.
local function page_text(page)
  local text, rest = unpack(redis.call('HMGET', record .. ':pages', page, page .. '+'))
  return text and rest and string.sub(text, 1, -1 - GOES_ON) .. rest or text
end

local function page_size(page)
  local key, field = record .. ':pages', string.format('%d', page)
  local rest = redis.call('HSTRLEN', key, field .. '+')
  return redis.call('HSTRLEN', key, field) + (rest > 0 and rest - GOES_ON or 0)
end

local is_cold = unit == 'bytes' and redis.call('HGET', record, 'tier') == 'cold'

-- The page that holds a byte of `first_page` or after it, and the bytes before that page. The sizes of the pages of
-- a row are asked of Redis.
local function page_of_byte(position, first_page)
  local low, high = math.floor((first_page - 1) / GROUP_PAGES), math.floor((pages - 1) / GROUP_PAGES)
  local sizes, later = sizes_of(low), low < high and sizes_of(low + 1)
  if not sizes then -- a short index
    low = 0
  elseif later and tonumber(string.match(later, '%d+')) > position then
    high = low
  end
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local found = sizes_of(middle)
    if found and tonumber(string.match(found, '%d+')) <= position then
      low, sizes = middle, found
    else
      high = middle - 1
    end
  end
  local page, before, first = low * GROUP_PAGES + 1, 0, true
  for size in string.gmatch(sizes or '', '%d+') do -- first the bytes before the group, then those of rows
    if not first and before + size > position then
      break
    end
    page, before, first = first and page or page + ROW_PAGES, before + size, false
  end
  if is_cold then -- it has no pages to be asked: the reader finds the page in the row
    return page, before
  end
  -- the sizes say which row it is, and a short index has one group: a longer way has other pages than it counts
  local farthest = math.min(pages, page + (sizes and ROW_PAGES or GROUP_PAGES))
  while page < farthest do
    local after = before + page_size(page)
    if after > position then
      return page, before
    end
    page, before = page + 1, after
  end
  if page < pages then
    error('the index of ' .. record .. ' does not match its pages')
  end
  return page, before
end

local last, torn
if (tail or '') ~= '' and not is_whole(record, count, tail) then
  local there, key = stored_pages(record .. ':pages', record .. ':lent')
  if redis.call('EXISTS', record .. ':lent') == 1 then
    return { 'lent', content }
  end
  last = there >= pages and redis.call('HGET', key, count) or ''
  if #last < tonumber(tail) then -- a torn append split it, and it continues on the next page
    last = last .. (redis.call('HGET', key, string.format('%d', pages + 1)) or '')
  end
  if there < pages or #last < tonumber(tail) then
    return { 'lost_data', fd, there }
  end
  last, torn = string.sub(last, 1, tonumber(tail)), 'torn'
end

local text = false
if wanted > 0 and wanted <= pages then
  text = torn and wanted == pages and last or page_text(wanted)
  add(math.floor((wanted - 1) / GROUP_PAGES) * GROUP_PAGES + 1)
elseif unit == 'bytes' then
  text = ''
  if kind ~= 'bytes' and first_position < tonumber(size) then
    local page, before, last_page = 1, 0, pages
    if not (is_cold and pages <= GROUP_PAGES) then -- else its index is with its checksums
      page, before = page_of_byte(first_position, 1)
      last_page = page_of_byte(math.min(last_position, size - 1), page)
      last_page = is_cold and math.min(pages, last_page + ROW_PAGES - 1) or last_page
    end
    text = string.format('%d %.0f %d', page, before, last_page)
  end
elseif unit ~= '' and kind ~= 'bytes' then -- bytes have no index
  add(group_before(unit, first_position))
  add(group_before(unit, last_position))
end
if state == 'open' or torn then
  last = last or redis.call('HGET', record .. ':pages', count)
  return { 'ok', content, redis.call('HGETALL', record), text, groups, last, stamp(writer_left(tree, record)), torn }
end
return { 'ok', content, redis.call('HGETALL', record), text, groups }
