-- Removes a tree that was not used within its retention, a bounded piece at a time. The first piece removes the
-- tree and its processes; contents follow. No tree of that name can be created before all are gone.
-- KEYS tree
-- ARGV is_dry most known_format
--   is_dry        '1' for a dry run
--   most          how many contents to remove at most
--   known_format  the newest format that the client knows
-- ->    ok 'kept' due | ok 'held' process now | ok 'due' contents bytes | ok 'more' | ok 'gone' | format found
--       | damaged why
if redis.call('EXISTS', tree) == 1 then
  local used, bytes, fds, format = unpack(redis.call('HMGET', tree, 'used_at', 'bytes', 'fds', 'format'))
  if is_newer(format, known_format) then
    return { 'format', format }
  end
  local days = limits_of(tree).retention_days
  if days == 0 then
    return { 'ok', 'kept', 'inf' }
  end
  used, days = tonumber(used), tonumber(days)
  -- never remove a tree because of unreadable fields; NaN fails every comparison
  if not (used and used >= 0 and days and days > 0) then
    return { 'damaged', 'its last use or its retention is not a number' }
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
  if is_dry == '1' then
    return { 'ok', 'due', fds, bytes }
  end
  detach_tree(tree, processes)
end
if is_dry ~= '1' then
  remove_contents(tree, most)
end
return { 'ok', redis.call('EXISTS', tree .. ':collecting') == 1 and 'more' or 'gone' }
