-- Removes a tree that nobody used for its retention, a bounded piece at a time. The first piece
-- takes the tree and its processes away; contents follow, and no tree of that name can be made
-- before all are gone.
-- KEYS  1 tree
-- ARGV  1 '1' to only say what would happen  2 how many contents to remove at most
--       3 the newest format that is known here: what a newer tree has is not
-- ->    ok 'kept' due | ok 'held' process now | ok 'due' contents bytes | ok 'more' | ok 'gone' | newer format
--       | damaged why
local tree = KEYS[1]
local collecting = tree .. ':collecting'
if redis.call('EXISTS', tree) == 1 then
  local used, bytes, fds, format = unpack(redis.call('HMGET', tree, 'used_at', 'bytes', 'fds', 'format'))
  if (tonumber(format) or 1) > tonumber(ARGV[3]) then
    return { 'newer', format }
  end
  local days = limits_of(tree).retention_days
  if days == 0 then
    return { 'ok', 'kept', 'inf' }
  end
  used, days = tonumber(used), tonumber(days)
  -- nothing is ever removed because of what cannot be read; NaN is neither more nor less than a number
  if not (used and used >= 0 and days and days > 0) then
    return { 'damaged', 'when it was used, or for how long it is to be kept' }
  end
  local due = used + days * 86400
  if due > seconds_now() then
    return { 'ok', 'kept', stamp(due) }
  end
  local processes = redis.call('ZRANGE', tree .. ':processes', 0, -1)
  for _, id in ipairs(processes) do
    local state = redis.call('HGET', process_record(tree, id), 'state')
    if state and state ~= 'open' and not ENDED[state] then
      return { 'ok', 'held', id, stamp(seconds_now()) }
    end
  end
  if ARGV[1] == '1' then
    return { 'ok', 'due', fds, bytes }
  end
  for _, id in ipairs(processes) do
    local process = process_record(tree, id)
    redis.call('UNLINK', process, process .. ':fds', process .. ':calls', process .. ':journal', process .. ':events',
      process .. ':writes')
  end
  if redis.call('EXISTS', tree .. ':contents') == 1 then
    redis.call('RENAME', tree .. ':contents', collecting)
  end
  redis.call('UNLINK', tree, tree .. ':processes', tree .. ':leases', tree .. ':writers', tree .. ':programs')
end
if ARGV[1] ~= '1' then
  for _, content in ipairs(redis.call('SPOP', collecting, ARGV[2])) do
    if string.match(content, '^.+/%d+$') then -- else it names nothing
      local record = content_record(tree, content)
      redis.call('UNLINK', record, record .. ':pages', record .. ':lent', record .. ':index', record .. ':holders',
        record .. ':events')
    end
  end
end
return { 'ok', redis.call('EXISTS', collecting) == 1 and 'more' or 'gone' }
