-- Removes a tree whatever its retention, a bounded piece at a time: the youngest processes of a large tree, then
-- the tree with the other processes, then its contents, as `collect` does. Damaged records are removed too. A
-- repeated call continues an interrupted removal.
-- KEYS tree
-- ARGV how most known_format
--   how           '1' to remove it even while its processes run or wait, 'rest' if the tree is removed and only its
--                 contents are left: a tree of that name is then a new one
--   most          how many contents to remove at most
--   known_format  the newest format that the client knows
-- ->    ok 'more'|'rest'|'gone' how-many | gone | in_use process state | format found
local MOST_PROCESSES = 1000 -- removed in one step
local processes = tree .. ':processes'
local root = string.match(tree, '{(.*)}$')
if redis.call('EXISTS', tree, processes, tree .. ':contents', tree .. ':collecting') == 0 then
  return { 'gone' }
end
if redis.call('EXISTS', tree, processes, tree .. ':contents') > 0 then
  if how == 'rest' then
    return { 'ok', 'gone', 0 }
  end
  local format = redis.pcall('HGET', tree, 'format')
  if type(format) == 'string' and is_newer(format, known_format) then
    return { 'format', format }
  end
  local oldest = how == '1' and -2 * MOST_PROCESSES or 0
  local members = redis.pcall('ZRANGE', processes, oldest, -1)
  if members.err then
    members = { root }
  end
  for _, id in ipairs(how == '1' and {} or members) do
    local state = redis.pcall('HGET', process_record(tree, id), 'state')
    if state == 'ready' or state == 'running' or state == 'waiting' then
      return { 'in_use', id, state }
    end
  end
  if #members >= 2 * MOST_PROCESSES then
    -- the youngest first: children are younger than their parents
    for i = #members - MOST_PROCESSES + 1, #members do
      remove_process(tree, members[i])
      redis.call('ZREM', processes, members[i])
    end
    return { 'ok', 'more', 0 }
  end
  detach_tree(tree, members)
end
local removed = remove_contents(tree, most)
return { 'ok', redis.call('EXISTS', tree .. ':collecting') == 1 and 'rest' or 'gone', removed }
