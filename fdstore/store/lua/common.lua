-- Functions shared by the scripts (prepended to each as needed). Keys derived here begin with the tree's record
-- `prefix:{tree}`, so they carry its hash tag. A reply is {'ok', ...} or {error type, fact, ...}.
--
-- The order of writes matters. Redis logs a script as MULTI, its writes, EXEC. If a crash tears the log inside
-- these, a server with `aof-load-truncated yes` keeps the writes before the tear and executes them at the second
-- restart, before the writes that clients made in between without knowing of them. Hence
--   - the write that makes something visible is one command, after all writes it depends on
--   - a removal first makes the object invisible
--   - a record is written with all its fields, a list or table is cleared first, and counters are set, not
--     incremented: a later script of the same kind then overwrites such leftovers
--   - counters of a tree are raised before the objects they count are written, and lowered after their removal:
--     too high is harmless

local ANSWER_MS = 30000 -- how long a repeated operation finds its first reply
local LAST_EVENT_S = 60 -- TTL of the last event: waiting clients also poll the record
local KEEP_NUMBERS_S = 31536000 -- how long the numbers of a removed tree are kept
local KEEP_GENERATED_S = 86400 -- the same of a tree with a generated name, if they are up to REOPENED_FROM
local MAX_WORDS = 20000 -- of a tree, for search, half of them of sources and failed calls: later ones are not found
local CHECK_EVERY_S = 60 -- how often the eviction policy is checked for a tree

local function seconds_now()
  local t = redis.call('TIME')
  return t[1] + t[2] / 1000000
end

local function stamp(seconds)
  return string.format('%.6f', seconds)
end

-- Parses a counter: a whole number from 0 to MAX_INTEGER, or 0 for an invalid value.
local function counted(value)
  local number = tonumber(value) or 0
  return number >= 0 and number <= MAX_INTEGER and math.floor(number) or 0
end

-- The items of a list that is stored in one field: at most MAX_LIST_BYTES of it, more than such a list may have. A script
-- that goes through a damaged one would keep Redis from everybody else.
local function items_of(list, pattern)
  return string.gmatch(string.sub(list or '', 1, MAX_LIST_BYTES), pattern)
end

-- When a lease of `seconds` expires, by its record. An invalid time has expired, and one more than two leases away:
-- the clock of Redis was set back since, and a living holder renews it.
local function lease_end(value, now, seconds)
  local at = tonumber(value) or 0
  return at <= now + 2 * seconds and at or 0
end

-- The damaged records met by this call, for people. Ending a process continues despite them, because nothing else
-- would end it.
local damage = {}

-- Calls a function, and records an error caused by a damaged record instead of raising it. Refusals by Redis for
-- other reasons are raised: nothing was written then.
local function despite_damage(what, id, step, ...)
  local done, why = pcall(step, ...)
  if done then
    return
  end
  local message = type(why) == 'table' and why.err or tostring(why)
  for _, code in ipairs({ 'OOM ', 'MISCONF', 'READONLY', 'NOREPLICAS', 'TRYAGAIN', 'NOPERM', 'ACL' }) do
    if string.find(message, code, 1, true) then
      error(why, 0)
    end
  end
  damage[#damage + 1] = what .. ' ' .. tostring(id) .. ': ' .. message
end

local function process_record(tree, process)
  return tree .. ':' .. process
end

local function content_record(tree, content, suffix)
  local process, number = string.match(content, '^(.-)/(%d+)$')
  return tree .. ':' .. process .. ':fd:' .. number .. (suffix or '')
end

-- The reply of an earlier run of the same operation, or false: 'ok' and at least so many `facts`, which are strings. The
-- reply of a tool call is stored in the process's `calls` hash, that of any other operation (field empty) in a key that
-- expires.
local function answered(key, field, facts)
  local text = field == '' and redis.call('GET', key) or field ~= '' and redis.call('HGET', key, field)
  local reply = text and cjson.decode(text)
  if reply and (type(reply) ~= 'table' or reply[1] ~= 'ok' or #reply <= facts) then
    error('the reply stored under ' .. (field == '' and key or field) .. ' is not one')
  end
  for i = 2, reply and facts + 1 or 0 do
    if type(reply[i]) ~= 'string' then
      error('the reply stored under ' .. (field == '' and key or field) .. ' is not one')
    end
  end
  return reply
end

local function answer(key, field, reply)
  local text = cjson.encode(reply)
  if field == '' then
    redis.call('SET', key, text, 'PX', ANSWER_MS)
  else
    redis.call('HSET', key, field, text)
  end
  return reply
end

-- Why `process` may not be written under `attempt` ('' for a writer without a lease), or nil.
local function refusal(process, attempt)
  local state, current = unpack(redis.call('HMGET', process, 'state', 'attempt'))
  if not state then
    return { 'gone' }
  end
  if ENDED[state] then
    return { 'fenced', 'it has ended (' .. state .. ')' }
  end
  if attempt ~= '' and (attempt ~= current or state ~= 'running') then
    return { 'fenced', 'attempt ' .. attempt .. ' no longer runs it; it is ' .. state .. ', attempt ' .. current }
  end
end

-- The error if this Redis evicts keys, or nil.
local function evicts()
  local info = redis.pcall('INFO', 'memory')
  local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:(%S+)')
  if policy and policy ~= 'noeviction' then
    return { 'unsafe', policy }
  end
end

-- Why nothing may be created in this Redis, or nil. Every client checks the eviction policy when it connects; this
-- detects one that is set later, at most once in CHECK_EVERY_S for each tree.
local function unsafe(tree, checked_at, now)
  now = now or seconds_now()
  local age = now - (tonumber(checked_at or redis.call('HGET', tree, 'checked_at')) or 0)
  if age >= 0 and age < CHECK_EVERY_S then
    return
  end
  local refused = evicts()
  if not refused then
    redis.call('HSET', tree, 'checked_at', stamp(now))
  end
  return refused
end

-- How many bytes of text take half of maxmemory (a text takes up to 7 % more than its bytes), or nil without a
-- limit.
local function half_of_memory()
  local info = redis.pcall('INFO', 'memory')
  local most = tonumber(type(info) == 'string' and string.match(info, 'maxmemory:(%d+)') or 0)
  return most > 0 and math.max(math.floor(most / 2 / 1.07), 1048576) or nil
end

-- The error for a missing descriptor, with the existing ones: at most 1000, since an error must not cost more
-- than the request. For a number of an earlier tree of this name it says when that was removed, for another one
-- below the first of a root that it is of another process.
local function not_found(fds, name)
  local all = redis.call('HLEN', fds) <= 1000
  local known = all and redis.call('HKEYS', fds) or redis.call('HRANDFIELD', fds, 1000)
  local tree_numbers = string.match(fds, '^.-}') .. ':earlier:numbers'
  local number = tonumber(string.match(name, '^fd:(%d+)$'))
  if number and number < counted(redis.call('HGET', tree_numbers, 'next_fd')) then
    return { 'removed', name, string.format('%.0f', counted(redis.call('HGET', tree_numbers, 'removed_at'))), unpack(known) }
  end
  local process = string.match(fds, '^(.*):fds$')
  if number and not string.find(process, '%.[0-9]+$') and number < counted(redis.call('HGET', process, 'first_fd')) then
    return { 'foreign', name, unpack(known) }
  end
  return { 'not_found', name, unpack(known) }
end

-- Empties the table, the state of programs, the questions and the journal of a process that is about to be created. UNLINK alone is not logged if it
-- finds no key, and half of another script may be there when the log is replayed, see above.
local function clear(process)
  redis.call('HSET', process .. ':fds', '', '')
  redis.call('HSET', process .. ':python', '', '')
  redis.call('HSET', process .. ':questions', '', '')
  redis.call('RPUSH', process .. ':journal', '')
  redis.call('UNLINK', process .. ':fds', process .. ':python', process .. ':questions', process .. ':journal')
end

-- The same for the record of a content, some of whose fields are written only if they say something.
local function clear_record(record)
  redis.call('HSET', record, 'fd', '')
  redis.call('UNLINK', record)
end

-- Those fields of a list (name, value, ...) whose value is not empty.
local function set_only(fields)
  local set = {}
  for i = 1, #fields, 2 do
    if fields[i + 1] ~= '' then
      set[#set + 1] = fields[i]
      set[#set + 1] = fields[i + 1]
    end
  end
  return set
end

local function limits_of(tree)
  return cjson.decode(redis.call('HGET', tree, 'limits'))
end

-- A process keeps its names (`name:KEY` in its table) in order as well, for listing by prefix. An entry is added
-- before its name is in the table and removed after it, so those without one are ignored. It is removed first: an
-- addition that changes nothing is not logged, and a torn removal may be in the log before it.
local function add_name(process, fd)
  if string.sub(fd, 1, 5) == 'name:' then
    redis.call('ZREM', process .. ':names', string.sub(fd, 6))
    redis.call('ZADD', process .. ':names', 0, string.sub(fd, 6))
  end
end

-- Removes names from a process's table, and from the list of its names.
local function remove_names(process, fds)
  redis.call('HDEL', process .. ':fds', unpack(fds))
  local keys = {}
  for _, fd in ipairs(fds) do
    if string.sub(fd, 1, 5) == 'name:' then
      keys[#keys + 1] = string.sub(fd, 6)
    end
  end
  if #keys > 0 then
    redis.call('ZREM', process .. ':names', unpack(keys))
  end
end

-- What a name of a process means: a content, or nil. A torn rename leaves an empty value (rename.lua).
local function content_of(fds, fd)
  local content = redis.call('HGET', fds, fd)
  return content and content ~= '' and content or nil
end

-- Whether the format of a tree is newer than the newest known one. A tree whose format is damaged can be removed.
local function is_newer(format, known)
  format = tonumber(format)
  return format and format > tonumber(known)
end

-- Why the name may not be replaced, or nil: the caller expects another content under it. `expected` is '' for
-- anything, 'absent', or the creation time and the producer of the content.
local function conflict(tree, fd, content, expected)
  if expected == '' then
    return
  end
  local created, producer
  if content and string.match(content, '^.+/%d+$') then
    created, producer = unpack(redis.call('HMGET', content_record(tree, content), 'created_at', 'producer'))
  end
  local found = content and (created or '') .. ' ' .. (producer or '') or 'absent'
  if found ~= expected then
    return { 'conflict', fd, content and (expected == 'absent' and 'taken' or 'other') or 'absent' }
  end
end

-- Makes a process, or a descriptor of it, findable by the words of a text (joined with blanks, see text/words.py):
-- adds a member `word kind process [descriptor]` for each. Before what they belong to is visible: a torn log may leave
-- words of nothing, which search leaves out. A key that holds something else is left as it is, for doctor.
-- `is_common`: there may be many such texts, which leave room for the others.
local function add_words(tree, kind, place, words, is_common)
  local key, members = tree .. ':search:words', {}
  local size = words ~= '' and redis.pcall('ZCARD', key)
  if type(size) ~= 'number' or size >= (is_common and MAX_WORDS / 2 or MAX_WORDS) then
    return
  end
  for word in string.gmatch(words, '[^ ]+') do
    members[#members + 1] = 0
    members[#members + 1] = word .. ' ' .. kind .. ' ' .. place
  end
  redis.call('ZADD', key, unpack(members))
end

-- Gives a process a descriptor of a content, which it has from `giver` unless it is new. The holders of a content
-- that was stored whole are listed from the second on: until then its producer alone holds it. So the giver is listed
-- as well, in the same command.
local function hold(tree, process, fd, content, giver)
  local record = process_record(tree, process)
  redis.call('SADD', content_record(tree, content) .. ':holders', process, giver or process)
  add_name(record, fd)
  redis.call('HSET', record .. ':fds', fd, content)
end

-- The number of pages of a stream, and the key that holds them: its pages, or `lent` during a large append.
local function stored_pages(key, key_lent)
  local count = redis.pcall('HLEN', key)
  if type(count) == 'number' and count > 0 then
    return count, key
  end
  count = redis.pcall('HLEN', key_lent)
  return type(count) == 'number' and count or 0, key_lent
end

-- Removes an open content from the writers that are checked.
local function forget_writer(tree, content)
  local producer, number = string.match(content, '^(.-)/(%d+)$')
  redis.call('ZREM', tree .. ':writers', content)
  redis.call('SREM', process_record(tree, producer) .. ':writes', number)
end

-- Lists the object of a cold content for deletion by the sweep, in `later_s` seconds. Before the record that names
-- it goes: the sweep deletes no object that a record names.
local function list_object(tree, where, later_s)
  if type(where) == 'string' and where ~= '' then
    redis.call('ZADD', tree .. ':cold:objects', stamp(seconds_now() + later_s), where)
  end
end

-- Adds to how many contents of a tree are cold, and their bytes.
local function count_cold(tree, more, more_bytes)
  local contents, bytes = unpack(redis.call('HMGET', tree, 'cold_fds', 'cold_bytes'))
  redis.call('HSET', tree, 'cold_fds', string.format('%.0f', math.max(0, counted(contents) + more)),
    'cold_bytes', string.format('%.0f', math.max(0, counted(bytes) + more_bytes)))
end

-- Removes a process from the holders of these contents, and deletes those without other holders. A process has at
-- most one name for a content, so dropping the name releases it. Without a list, the producer is the only holder.
local function release(tree, process, contents)
  local gone, bytes, cold, cold_bytes = 0, 0, 0, 0
  local function release_one(content)
    local key = content_record(tree, content, ':holders')
    local was_listed = redis.call('SREM', key, process) == 1
    local held_it = was_listed or string.match(content, '^(.-)/') == process
    if held_it and redis.call('EXISTS', key) == 0 then
      local record = content_record(tree, content)
      local size, state, where = unpack(redis.call('HMGET', record, 'bytes', 'state', 'where'))
      if state == 'open' then
        forget_writer(tree, content)
      end
      if where then
        list_object(tree, where, 0)
        cold, cold_bytes = cold + 1, cold_bytes + counted(size)
      end
      redis.call('UNLINK', record, record .. ':pages', record .. ':lent', record .. ':index', record .. ':events',
        record .. ':sums', record .. ':reads')
      redis.call('SREM', tree .. ':contents', content)
      gone = gone + 1
      bytes = bytes + counted(size)
    end
  end
  for _, content in ipairs(contents) do
    despite_damage('content', content, release_one, content)
  end
  if gone > 0 then
    local all_bytes, all = unpack(redis.call('HMGET', tree, 'bytes', 'fds'))
    redis.call('HSET', tree, 'bytes', string.format('%.0f', all_bytes - bytes), 'fds', all - gone)
    if cold > 0 then
      count_cold(tree, -cold, -cold_bytes)
    end
  end
end

-- How many contents and bytes a process frees by dropping its name of this content (nil for none).
local function freed_by(tree, content)
  if not content or not string.match(content, '^.+/%d+$') then
    return 0, 0
  end
  local record = content_record(tree, content)
  if redis.call('SCARD', record .. ':holders') > 1 then -- 0: not listed, see `hold`
    return 0, 0
  end
  return 1, counted(redis.call('HGET', record, 'bytes'))
end

-- Drops up to `most` names of a process, except `kept`, from an HSCAN cursor on ('0' at first). Returns the cursor to
-- continue with, '0' to begin again, or nil if no name is left.
local function release_piece(tree, process, most, kept, cursor)
  local fds, names, contents = process_record(tree, process) .. ':fds', {}, {}
  repeat
    local found
    cursor, found = unpack(redis.call('HSCAN', fds, cursor, 'COUNT', most))
    for i = 1, #found, 2 do
      if #names < most and found[i] ~= kept then
        names[#names + 1] = found[i]
        contents[#contents + 1] = found[i + 1]
      end
    end
  until #names > 0 or cursor == '0'
  if #names > 0 then
    remove_names(process_record(tree, process), names)
    release(tree, process, contents)
  end
  return redis.call('EXISTS', fds) == 1 and cursor or nil
end

local function release_all(tree, process)
  local fds = process_record(tree, process) .. ':fds'
  release(tree, process, redis.call('HVALS', fds))
  redis.call('UNLINK', fds, process_record(tree, process) .. ':names')
end

local function remove_process(tree, id)
  local process = process_record(tree, id)
  redis.call('UNLINK', process, process .. ':fds', process .. ':calls', process .. ':journal', process .. ':events',
    process .. ':writes', process .. ':names', process .. ':saved', process .. ':python', process .. ':asks',
    process .. ':asks:queue', process .. ':questions')
end

-- Whether a root name has the form of those that are generated (tree_limits.py).
local function is_generated(root)
  local letters = string.match(root, '%-([a-z2-7]+)$') or ''
  return #letters == 6 and string.find(letters, '[a-z]') and string.find(letters, '[2-7]')
end

-- Keeps the numbers that the root of a tree gives next: a later tree of this name begins there, so that an id of
-- this one, kept in a conversation, never means another text. Its record is renamed and emptied of the rest, which a
-- full Redis allows. Of a generated name they are kept for a day, for clients that still know the tree: a later tree of
-- that name begins above REOPENED_FROM.
local function keep_numbers(tree)
  local tree_numbers = tree .. ':earlier:numbers'
  local root = string.match(tree, '{(.*)}$')
  local process = process_record(tree, root)
  local numbers = redis.pcall('HMGET', process, 'next_fd', 'next_child')
  if numbers.err then -- WRONGTYPE: a damaged tree can be removed, too
    return
  end
  if counted(numbers[1]) > 1 or counted(numbers[2]) > 1 then
    redis.call('RENAME', process, tree_numbers)
    for _, field in ipairs(redis.call('HKEYS', tree_numbers)) do
      if field ~= 'next_fd' and field ~= 'next_child' then
        redis.call('HDEL', tree_numbers, field)
      end
    end
    redis.call('HSET', tree_numbers, 'removed_at', string.format('%.0f', seconds_now()))
    local last = math.max(counted(numbers[1]), counted(numbers[2])) - 1
    local is_short = is_generated(root) and last <= REOPENED_FROM
    redis.call('EXPIRE', tree_numbers, is_short and KEEP_GENERATED_S or KEEP_NUMBERS_S)
  end
end

-- Removes a tree and its processes, and renames the set of its contents: `remove_contents` removes them in pieces,
-- and until then no tree of that name can be created.
local function detach_tree(tree, processes)
  keep_numbers(tree)
  for _, id in ipairs(processes) do
    remove_process(tree, id)
  end
  if redis.call('EXISTS', tree .. ':contents') == 1 then
    redis.call('RENAME', tree .. ':contents', tree .. ':collecting')
  end
  redis.call('UNLINK', tree, tree .. ':processes', tree .. ':leases', tree .. ':writers', tree .. ':programs',
    tree .. ':search:words', tree .. ':questions')
end

-- Removes up to `most` contents of a detached tree. Returns how many.
local function remove_contents(tree, most)
  local contents = redis.call('SPOP', tree .. ':collecting', most)
  for _, content in ipairs(contents) do
    if string.match(content, '^.+/%d+$') then -- otherwise it is not a content id
      local record = content_record(tree, content)
      list_object(tree, redis.pcall('HGET', record, 'where'), 0)
      redis.call('UNLINK', record, record .. ':pages', record .. ':lent', record .. ':index', record .. ':holders',
        record .. ':events', record .. ':sums', record .. ':reads')
    end
  end
  return #contents
end

-- Seconds until the writer of an open content counts as lost, including the grace period after its lease
-- (lost_writer.lua). A stream without a lease breaks when its process ends; if the process has ended and the
-- stream is still open, the log was torn.
local function writer_left(tree, record)
  local leased_until, doubt, producer, lease =
    unpack(redis.call('HMGET', record, 'writer_until', 'doubt', 'producer', 'lease'))
  if leased_until and leased_until ~= '' then
    local now = seconds_now()
    local doubted, until_ = string.match(doubt or '', '^(.*) (%S+)$')
    local last = doubted == leased_until and until_ or leased_until
    local seconds = math.min(tonumber(lease) or MAX_STREAM_LEASE_S, MAX_STREAM_LEASE_S)
    return math.max(0, lease_end(last, now, seconds) - now)
  end
  local state = redis.call('HGET', process_record(tree, producer or ''), 'state')
  return state and not ENDED[state] and PROCESS_WRITES_S or 0
end

-- Wakes the readers of an open content: `id` is its new length, then 1 for text and 2 for the end. '~' keeps up to
-- a hundred wake-ups in the memory of one; to keep exactly one, Redis would search the deleted ones.
local function wake_readers(record, id, name, value)
  local added = redis.pcall('XADD', record .. ':events', 'MAXLEN', '~', 1, id, name, value)
  if type(added) == 'table' then
    -- there is a later one, for text that was lost with the tail of the log
    redis.call('UNLINK', record .. ':events')
    redis.call('XADD', record .. ':events', id, name, value)
  end
end

-- Ends an open content and wakes its readers. The id of an event is the length it reports (in characters; of
-- bytes, in bytes), then 1 for a piece and 2 for the end: a reader waits for events after the length it has read,
-- so it misses none between reading and waiting.
local function end_stream(tree, content, state, exit_code, reason, chain)
  local record = content_record(tree, content)
  local ended = { 'state', state }
  for name, value in pairs({ exit_code = exit_code, reason = reason, chain = chain }) do
    if value ~= '' then
      ended[#ended + 1] = name
      ended[#ended + 1] = value
    end
  end
  redis.call('HSET', record, unpack(ended))
  redis.call('HDEL', record, 'writer', 'writer_until', 'lease', 'doubt')
  forget_writer(tree, content)
  wake_readers(record, redis.call('HGET', record, 'chars') .. '-2', 'state', state)
  redis.call('EXPIRE', record .. ':events', LAST_EVENT_S) -- a Redis stream takes 5 KB even if nearly empty
end

local function break_stream(tree, content, reason)
  if redis.call('HGET', content_record(tree, content), 'state') == 'open' then
    end_stream(tree, content, 'broken', '', reason)
  end
end

-- Breaks the open streams of a process that ends.
local function break_streams(tree, process, reason)
  for _, number in ipairs(redis.call('SMEMBERS', process_record(tree, process) .. ':writes')) do
    local content = process .. '/' .. number
    despite_damage('content', content, break_stream, tree, content, reason)
  end
end

local function count_end(tree, now, kind)
  local live = redis.call('HGET', tree, 'live') - (kind == 'asks' and 0 or 1) -- lanes are not counted (asks.py)
  redis.call('HSET', tree, 'live', live, 'used_at', now)
end

-- Counts failures and losses of processes in the tree's record, by spans of five minutes of the last hour:
-- "span:failures:losses ...". The sweep sums them over all trees.
local function count_troubles(tree, now, failures, losses)
  local this, kept = math.floor(now / TROUBLE_SPAN_S), {}
  local troubles = string.sub(redis.call('HGET', tree, 'troubles') or '', 1, 1000)
  for span, failed, lost in string.gmatch(troubles, '(%d+):(%d+):(%d+)') do
    span = counted(span)
    if span == this then
      failures, losses = failures + counted(failed), losses + counted(lost)
    elseif span < this and span > this - TROUBLE_SPANS then
      kept[#kept + 1] = string.format('%.0f:%.0f:%.0f', span, counted(failed), counted(lost))
    end
  end
  kept[#kept + 1] = string.format('%.0f:%.0f:%.0f', this, failures, losses)
  redis.call('HSET', tree, 'troubles', table.concat(kept, ' '))
end

-- Removes a lane that ends from the live ones of its parent.
local function forget_lane(tree, id)
  local key_asks, left = process_record(tree, string.match(id, '^(.+)%.') or '') .. ':asks', {}
  for lane in items_of(redis.call('HGET', key_asks, 'lanes'), '%S+') do
    left[#left + 1] = lane ~= id and lane or nil
  end
  if #left > 0 then
    redis.call('HSET', key_asks, 'lanes', table.concat(left, ' '))
  else
    redis.call('HDEL', key_asks, 'lanes')
  end
end

-- Withdraws the open questions of a process to a person: it has ended, or does not wait for them any more (people.py).
local function withdraw_questions(tree, id)
  local key_questions = process_record(tree, id) .. ':questions'
  for number in items_of(redis.call('HGET', key_questions, 'open'), '%d+') do
    redis.call('ZREM', tree .. ':questions', id .. '/' .. number)
  end
  redis.call('HDEL', key_questions, 'open')
end

-- The numbers of the open questions of a process without this one.
local function open_without(key_questions, number)
  local left = {}
  for each in items_of(redis.call('HGET', key_questions, 'open'), '%d+') do
    left[#left + 1] = each ~= number and each or nil
  end
  return table.concat(left, ' ')
end

-- Writes what became of a question, which is final, and takes it off the list of open ones.
local function settle_question(tree, id, key_questions, number, record)
  redis.call('HSET', key_questions, number .. '/answer', record, 'open', open_without(key_questions, number))
  redis.call('ZREM', tree .. ':questions', id .. '/' .. number)
  return record
end

-- Writes the end of a process: its state and its results ('' for none), and removes obsolete fields. Its open
-- streams break with the reason `why`, and its lanes are cancelled.
local function write_end(tree, id, state, now, why, exit_code, reason, answer_text, answer_fd)
  local process = process_record(tree, id)
  local kind = redis.call('HGET', process, 'kind')
  local function end_lanes()
    for lane in items_of(redis.call('HGET', process .. ':asks', 'lanes'), '%S+') do
      local lane_state = redis.call('HGET', process_record(tree, lane), 'state')
      if lane_state and not ENDED[lane_state] then
        write_end(tree, lane, 'cancelled', now, CANCELLED, '', CANCELLED, '', '')
      end
    end
  end
  -- remove first: a full Redis refuses a script that begins with an addition, and an end frees memory
  redis.call('HDEL', process, 'lease_until', 'waiting_for', 'trouble')
  redis.call('HSET', process, 'state', state, 'ended_at', now, 'exit_code', exit_code, 'reason', reason,
    'answer', answer_text, 'answer_fd', answer_fd)
  if kind == 'pipeline' then
    -- release its input: holding it would keep a source running that has no other reader
    despite_damage('the table of', id, release_all, tree, id)
  end
  despite_damage('the leases of', tree, redis.call, 'ZREM', tree .. ':leases', id)
  despite_damage('the streams of', id, break_streams, tree, id, why)
  despite_damage('the events of', id, redis.call, 'XADD', process .. ':events', 'MAXLEN', 1, '*', 'state', state)
  redis.call('EXPIRE', process .. ':events', LAST_EVENT_S)
  despite_damage('tree', tree, count_end, tree, now, kind)
  if state == 'failed' then
    despite_damage('tree', tree, count_troubles, tree, now, 1, 0)
  end
  despite_damage('the questions of', id, withdraw_questions, tree, id)
  if kind == 'asks' then
    despite_damage('the asks of', id, forget_lane, tree, id)
  else
    despite_damage('the asks of', id, end_lanes)
  end
end

-- Makes a process ready that waited, or that its worker has left. The sweep wakes it from `now` on.
local function make_ready(tree, id, now)
  local process = process_record(tree, id)
  redis.call('HSET', process, 'state', 'ready', 'ready_at', now)
  redis.call('HDEL', process, 'waiting_for', 'worker', 'lease_until', 'trouble')
  redis.call('ZADD', tree .. ':leases', now, id)
end

-- Removes ended processes (a set of ids) from what an ancestor waits for. Returns whether that made it ready.
local function stop_waiting(tree, ancestor, ended, now)
  local key = process_record(tree, ancestor)
  local state, waiting = unpack(redis.call('HMGET', key, 'state', 'waiting_for'))
  if state ~= 'waiting' then
    return false
  end
  local left, found = {}, false
  for id in string.gmatch(waiting or '', '%S+') do
    if ended[id] then
      found = true
    else
      left[#left + 1] = id
    end
  end
  if not found then
    return false
  end
  if #left > 0 then
    redis.call('HSET', key, 'waiting_for', table.concat(left, ' '))
    return false
  end
  make_ready(tree, ancestor, now)
  return true
end

-- Removes ended processes (a set of ids: `id` and its descendants) from what the ancestors of `id` wait for: an
-- agent may wait for any descendant. Returns the ids of ancestors that became ready, nearest first, separated by
-- blanks.
local function notify_ancestors(tree, id, ended, now)
  local ready = {}
  local function notify(ancestor)
    if stop_waiting(tree, ancestor, ended, now) then
      ready[#ready + 1] = ancestor
    end
  end
  local ancestor = string.match(id, '^(.+)%.')
  while ancestor do
    despite_damage('process', ancestor, notify, ancestor)
    ancestor = string.match(ancestor, '^(.+)%.')
  end
  return table.concat(ready, ' ')
end

-- Why this parent may not have another child now, or nil.
local function no_room(tree, parent)
  local limits = limits_of(tree)
  local _, dots = string.gsub(parent, '%.', '')
  if dots + 2 > limits.tree_depth then
    return { 'spawn_limit', 'tree_depth', limits.tree_depth }
  end
  local processes, live = unpack(redis.call('HMGET', tree, 'processes', 'live'))
  if processes + 1 > limits.tree_processes then
    return { 'spawn_limit', 'tree_processes', limits.tree_processes }
  end
  if live + 1 > limits.tree_live then
    return { 'spawn_limit', 'tree_live', limits.tree_live }
  end
end

local function today()
  return math.floor(seconds_now() / 86400)
end

-- Counts answers of models and their tokens: all, and by UTC day. Of the days before only the last is kept,
-- for people.
local function count_answers(tree, answers, tokens)
  local day, counted = today(), tonumber(redis.call('HGET', tree, 'usage_day') or 0)
  if counted ~= day then
    local calls, used = unpack(redis.call('HMGET', tree, 'model_calls', 'tokens'))
    redis.call('HSET', tree, 'usage_day', day, 'model_calls', 0, 'tokens', 0)
    if counted > 0 then
      local was_yesterday = counted == day - 1
      redis.call('HSET', tree, 'model_calls_yesterday', was_yesterday and calls or 0,
        'tokens_yesterday', was_yesterday and used or 0)
    end
  end
  redis.call('HINCRBY', tree, 'model_calls', answers)
  redis.call('HINCRBY', tree, 'tokens', tokens)
  redis.call('HINCRBY', tree, 'all_model_calls', answers)
  redis.call('HINCRBY', tree, 'all_tokens', tokens)
end

-- Adds tokens to the record of a process: input, output, of the input those read from a cache, written to one.
local function count_tokens(record, counts)
  local names = { 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens' }
  local fields = {}
  for i, value in ipairs(redis.call('HMGET', record, unpack(names))) do
    fields[2 * i - 1], fields[2 * i] = names[i], string.format('%.0f', counted(value) + counts[i])
  end
  redis.call('HSET', record, unpack(fields))
end

-- The name and value of a limit of all its answers that a tree has reached, and how much it has used; nothing if
-- there is none.
local function budget_reached(tree)
  local limits = limits_of(tree)
  local calls, tokens = unpack(redis.call('HMGET', tree, 'all_model_calls', 'all_tokens'))
  calls, tokens = counted(calls), counted(tokens)
  if tokens >= (limits.tree_token_budget or math.huge) then
    return 'tree_token_budget', limits.tree_token_budget, tokens
  end
  if calls >= (limits.tree_model_calls or math.huge) then
    return 'tree_model_calls', limits.tree_model_calls, calls
  end
end

-- As `budget_reached`, of today's limits.
local function day_limit(tree)
  local day, calls, tokens = unpack(redis.call('HMGET', tree, 'usage_day', 'model_calls', 'tokens'))
  local is_today = tonumber(day or 0) == today()
  calls, tokens = is_today and tonumber(calls) or 0, is_today and tonumber(tokens) or 0
  local limits = limits_of(tree)
  if calls >= (limits.tree_model_calls_per_day or math.huge) then
    return 'tree_model_calls_per_day', limits.tree_model_calls_per_day, calls
  end
  if tokens >= (limits.tree_tokens_per_day or math.huge) then
    return 'tree_tokens_per_day', limits.tree_tokens_per_day, tokens
  end
end

-- How many answers of models the limits of a tree leave.
local function calls_left(tree)
  local limits = limits_of(tree)
  local day, today_, all = unpack(redis.call('HMGET', tree, 'usage_day', 'model_calls', 'all_model_calls'))
  today_ = tonumber(day or 0) == today() and counted(today_) or 0
  return math.min((limits.tree_model_calls or math.huge) - counted(all),
    (limits.tree_model_calls_per_day or math.huge) - today_)
end

-- Adds a new process to its tree. Its record is written afterwards, and makes it visible.
local function enter_process(tree, id, now, is_ready)
  local processes, live = unpack(redis.call('HMGET', tree, 'processes', 'live'))
  redis.call('HSET', tree, 'processes', processes + 1, 'live', live + 1, 'used_at', now)
  redis.call('ZADD', tree .. ':processes', now, id)
  if is_ready then
    redis.call('ZADD', tree .. ':leases', now, id)
  end
end

-- Creates an empty stream that `process` writes: of text, until a first piece of bytes (append.lua); from then on
-- `chars` counts bytes, which is what events and writers count in. `lease` is in seconds, or '' if the process has
-- the lease; `index` is the index of an empty text.
local function make_stream(tree, process, number, page_size, source, writer, lease, index)
  local now = seconds_now()
  local content = process .. '/' .. number
  local record = content_record(tree, content)
  redis.call('HSET', tree, 'fds', redis.call('HGET', tree, 'fds') + 1, 'used_at', stamp(now))
  redis.call('HSET', record .. ':pages', 1, '')
  redis.call('HSET', record .. ':index', 1, index)
  redis.call('SADD', tree .. ':contents', content)
  redis.call('ZADD', tree .. ':writers', stamp(now + (lease ~= '' and lease or PROCESS_WRITES_S)), content)
  redis.call('SADD', process_record(tree, process) .. ':writes', number)
  clear_record(record)
  redis.call('HSET', record, 'fd', 'fd:' .. number, 'state', 'open', 'chars', 0, 'bytes', 0, 'lines', 0,
    'pages', 1, 'tail', 0, 'page_size', page_size, 'source', source, 'created_at', stamp(now), 'producer', process,
    'writer', writer, 'writer_until', lease ~= '' and stamp(now + lease) or '', 'lease', lease)
  return content
end

-- The next number of a counter, above `seen`: a Redis that lost the tail of its log would otherwise reuse numbers
-- that the caller knows.
local function next_number(process_key, counter, seen)
  local number = redis.call('HINCRBY', process_key, counter, 1) - 1
  if number <= tonumber(seen or 0) then
    number = seen + 1
    redis.call('HSET', process_key, counter, string.format('%.0f', number + 1))
  end
  if number > MAX_INTEGER then
    error('the counter ' .. counter .. ' of ' .. process_key .. ' is too high')
  end
  return string.format('%.0f', number)
end

-- The number of a named content: microseconds. A number from the counter would be allocated again if the log is torn
-- after this; as a descriptor it then replaces this entry of the table, but a name would stay beside it, and mean the
-- later content.
local function unused_number(process_key, now)
  local number = math.floor(now * 1000000)
  while redis.call('EXISTS', process_key .. ':fd:' .. string.format('%.0f', number)) == 1 do
    number = number + 1
  end
  return string.format('%.0f', number)
end

-- The state of a process's programs (python_state.py) is under this key.
local function python_key(tree, process)
  return process_record(tree, process) .. ':python'
end

-- The head of the state of a process's programs: strings by name.
local function python_head(key)
  local head = redis.call('HGET', key, 'head')
  local state = head and cjson.decode(head) or {}
  for _, value in pairs(state) do
    if type(value) ~= 'string' then
      error('the head of ' .. key .. ' has a value that is not a string')
    end
  end
  return state
end

local function put_python_head(key, state)
  redis.call('HSET', key, 'head', cjson.encode(state))
end

-- The key that has the pieces of the session in a state: its own, or that of the process which the head names.
local function python_key_of_session(tree, key, state)
  local of = state.session_of
  if not of then
    return key
  end
  if redis.call('EXISTS', process_record(tree, of)) == 0 or not string.match(of, '^[%w_%.-]+$') then
    error('the session of ' .. key .. ' is of no process of the tree')
  end
  return python_key(tree, of)
end

-- With what the names of the recorded answers begin. Those before the last snapshot have another version.
local function python_answers(state)
  return (state.snapshot or state.run or '') .. '/answer/'
end

-- Whether the session of a process is this version. A damaged state is left to `doctor`: it may be.
local function has_session(tree, process, version)
  local done, state = pcall(python_head, python_key(tree, process))
  return not done or state.session == version
end

-- Removes the fields that belong to no part of the current state, and to no session that a copy has (`copy_python`).
local function remove_old_python_fields(tree, key, state)
  local current, old, names = { head = true }, {}, redis.call('HKEYS', key)
  if not state.session_of then
    current[state.session or ''] = true
  end
  current[state.snapshot or state.run or ''] = true
  for _, name in ipairs(names) do
    local version, holder = string.match(name, '^([^/]+)/held/(.+)$')
    if version and has_session(tree, holder, version) then
      current[version], current[name] = true, true
    end
  end
  current[''] = nil
  for _, name in ipairs(names) do
    if not current[string.match(name, '/held/') and name or string.match(name, '^[^/]*')] then
      old[#old + 1] = name
    end
  end
  for i = 1, #old, 2000 do -- Lua's stack holds a few thousand values
    redis.call('HDEL', key, unpack(old, i, math.min(i + 1999, #old)))
  end
end

-- Replaces the state of a process's programs, and removes what belonged to the one `before` alone.
local function replace_python(tree, process, before, state)
  local key = python_key(tree, process)
  if state then
    put_python_head(key, state)
  else
    redis.call('HDEL', key, 'head')
  end
  remove_old_python_fields(tree, key, state or {})
  local of = before.session_of
  if of and not (state and state.session_of == of and state.session == before.session) then
    local key_of = python_key_of_session(tree, key, before)
    redis.call('HDEL', key_of, before.session .. '/held/' .. process)
    remove_old_python_fields(tree, key_of, python_head(key_of))
  end
end

-- Gives a process the session of another one, by reference, without the call that runs there. The pieces stay with the
-- process that stored them; a field `version/held/process` there keeps them for each other process that has them.
local function copy_python(tree, from, to)
  local source = python_head(python_key(tree, from))
  if not source.session then
    return
  end
  local of, key_of = source.session_of or from, python_key_of_session(tree, python_key(tree, from), source)
  local before = python_head(python_key(tree, to))
  if of ~= to then
    redis.call('HSET', key_of, source.session .. '/held/' .. to, '')
  end
  local state = { session = source.session, session_chunks = source.session_chunks, session_of = of ~= to and of or nil }
  replace_python(tree, to, before, state)
end

-- Removes the state of the programs of a process that ends. A session that a copy has stays until that lets it go.
local function release_python(tree, process)
  local key = python_key(tree, process)
  if redis.call('EXISTS', key) == 1 then
    replace_python(tree, process, python_head(key), nil)
  end
end

-- The member of the queue that stands for an ask: those of a call are in the order of their numbers.
local function queued_ask(call, number)
  return call .. '/' .. string.format('%016.0f', number)
end

-- The lanes of a call (asks.py), and the lane that has taken each ask that was not answered, by number.
local function lanes_of_call(tree, key_asks, call)
  local lanes, taken = {}, {}
  for id in items_of(redis.call('HGET', key_asks, 'lanes/' .. call), '%S+') do
    local state, reason = unpack(redis.call('HMGET', process_record(tree, id), 'state', 'reason'))
    local lane = { id = id, state = state or 'cancelled', reason = reason or '' }
    lane.ended = not state or ENDED[state] or false
    for number in string.gmatch(redis.call('HGET', key_asks, 'taken/' .. id) or '', '%S+') do
      taken[number] = lane
    end
    lanes[#lanes + 1] = lane
  end
  return lanes, taken
end

-- Counts the asks of a call for people: how many there are, have an answer, have an error as their answer.
local function count_asks(key_asks, call, total, done, failed)
  if total + done > 0 then
    local counts = redis.call('HGET', key_asks, 'counts/' .. call) or ''
    local all, done_, failed_ = string.match(counts, '^(%d+) (%d+) (%d+)$')
    redis.call('HSET', key_asks, 'counts/' .. call, string.format('%.0f %.0f %.0f', counted(all) + total,
      counted(done_) + done, counted(failed_) + failed))
  end
end

local function milliseconds_now()
  return string.format('%.0f', math.floor(seconds_now() * 1000))
end

-- A JSON object with the time of its writing.
local function stamped(record, at_ms)
  return #record > 2 and string.sub(record, 1, -2) .. ',"at_ms":' .. at_ms .. '}' or record
end


-- Withdraws questions, by their numbers, which no call waits for any more. Those that have an answer keep it.
local function withdraw_numbered(tree, id, key_questions, numbers)
  for number in string.gmatch(numbers, '%S+') do
    local asked, found = unpack(redis.call('HMGET', key_questions, number, number .. '/answer'))
    if asked and not found then
      settle_question(tree, id, key_questions, number, stamped('{"how":"withdrawn"}', milliseconds_now()))
    end
  end
end
