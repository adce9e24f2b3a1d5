-- Creates a child process that holds descriptors of its parent under the same ids, by reference.
-- KEYS  1 tree  2 parent  3 parent's fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt of the parent  3 parent id  4 state  5 program  6 bundle digest
--       7 bundle (JSON, '' if the tree has it)  8 first journal record ('' for none)
--       9 source of the stream that it writes ('' for none)  10 page size  11 index of an empty text
--       12 the highest descriptor and 13 child number that the client has seen
--       14 traceparent of its creator, '' for none  15 price of the model (JSON, '' for none)
--       16 first line of its task, '' for none  17 words of its task and 18 of the source of its stream, for search
--       19 '*' for the whole table, else '' followed by 20.. the ids to share
-- ->    ok child | unsafe policy | gone | fenced why | spawn_limit name limit | quota_exceeded name limit
--       | not_found id known...
local done = answered(KEYS[4], ARGV[1], 1)
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2]) or unsafe(KEYS[1])
if refused then
  return refused
end
local tree, parent = KEYS[1], ARGV[3]
local full = no_room(tree, parent)
if full then
  return full
end
if ARGV[4] == 'ready' then
  local name, limit = budget_reached(tree)
  if name then
    return { 'spawn_limit', name, limit } -- it would end at once
  end
end
local has_output = ARGV[9] ~= ''
local limits = limits_of(tree)
if has_output and redis.call('HGET', tree, 'fds') + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
local shared = {}
for i = 20, #ARGV do
  local content = content_of(KEYS[3], ARGV[i])
  if not content then
    return not_found(KEYS[3], ARGV[i])
  end
  shared[ARGV[i]] = content
end

local now = stamp(seconds_now())
local id = parent .. '.' .. next_number(KEYS[2], 'next_child', ARGV[13])
local process = process_record(tree, id)
clear(process)
if ARGV[19] == '*' then
  local held = redis.call('HGETALL', KEYS[3])
  for i = 2, #held, 2 do
    if string.match(held[i], '^.+/%d+$') then -- a damaged entry is copied as it is
      redis.call('SADD', content_record(tree, held[i]) .. ':holders', id, parent) -- as `hold`
    end
  end
  redis.call('ZUNIONSTORE', process .. ':names', 1, KEYS[2] .. ':names')
  for i = 1, #held, 2000 do -- Lua's stack holds a few thousand values
    redis.call('HSET', process .. ':fds', unpack(held, i, math.min(i + 1999, #held)))
  end
  copy_python(tree, parent, id)
end
for fd, content in pairs(shared) do
  hold(tree, id, fd, content, parent)
end
if ARGV[7] ~= '' then
  redis.call('HSETNX', tree .. ':programs', ARGV[6], ARGV[7])
end
if ARGV[8] ~= '' then
  redis.call('RPUSH', process .. ':journal', ARGV[8])
end
local outputs, first = '', nil
if has_output then
  -- only the parent holds the stream: the child has no use for its own text
  local number = next_number(KEYS[2], 'next_fd', ARGV[12])
  outputs, first = 'fd:' .. number, number
  hold(tree, parent, outputs, make_stream(tree, id, number, ARGV[10], ARGV[9], 'process', '', ARGV[11]))
  add_words(tree, 'source', parent .. ' ' .. outputs, ARGV[18])
end
local next_fd = math.max(redis.call('HGET', KEYS[2], 'next_fd'), ARGV[12] + 1)
add_words(tree, 'task', id, ARGV[17])
enter_process(tree, id, now, ARGV[4] == 'ready')
redis.call('HSET', process, 'parent', parent, 'state', ARGV[4], 'attempt', 0, 'losses', 0, 'kind', '',
  'program', ARGV[5], 'bundle', ARGV[6], 'input', '', 'outputs', outputs,
  'first_fd', first or next_fd, 'next_fd', next_fd, 'next_child', 1, 'started_at', now,
  'ready_at', now, unpack(set_only({ 'traceparent', ARGV[14], 'price', ARGV[15], 'task', ARGV[16] })))
return answer(KEYS[4], ARGV[1], { 'ok', id })
