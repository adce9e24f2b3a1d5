-- Creates a child process that holds descriptors of its parent under the same ids, by reference.
-- KEYS tree parent_record parent_table answers
-- ARGV op attempt parent state program bundle bundle_json first_record source page_size empty_index seen_fd
--      seen_child traceparent price task task_words source_words whole ids...
--   answers        where the reply to `op` is kept
--   attempt        attempt of the parent
--   bundle         bundle digest
--   bundle_json    bundle (JSON, '' if the tree has it)
--   first_record   first journal record ('' for none)
--   source         source of the stream that it writes ('' for none)
--   empty_index    index of an empty text
--   seen_fd        the highest descriptor that the client has seen
--   seen_child     the highest child number that the client has seen
--   traceparent    traceparent of its creator, '' for none
--   price          price of the model (JSON, '' for none)
--   task           first line of its task, '' for none
--   task_words     words of its task, for search
--   source_words   words of the source of its stream, for search
--   whole          '*' for the whole table, '' for these `ids`
--   ids            the ids to share
-- ->    ok child | unsafe policy | gone | fenced why | spawn_limit name limit | quota_exceeded name limit
--       | not_found id known...
local done = answered(answers, op, 1)
if done then
  return done
end
local refused = refusal(parent_record, attempt) or unsafe(tree)
if refused then
  return refused
end
local full = no_room(tree, parent)
if full then
  return full
end
if state == 'ready' then
  local name, limit = budget_reached(tree)
  if name then
    return { 'spawn_limit', name, limit } -- it would end at once
  end
end
local has_output = source ~= ''
local limits = limits_of(tree)
if has_output and redis.call('HGET', tree, 'fds') + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
local shared = {}
for i = ids_from, #ARGV do
  local content = content_of(parent_table, ARGV[i])
  if not content then
    return not_found(parent_table, ARGV[i])
  end
  shared[ARGV[i]] = content
end

local now = stamp(seconds_now())
local id = parent .. '.' .. next_number(parent_record, 'next_child', seen_child)
local process = process_record(tree, id)
clear(process)
if whole == '*' then
  local held = redis.call('HGETALL', parent_table)
  for i = 2, #held, 2 do
    if string.match(held[i], '^.+/%d+$') then -- a damaged entry is copied as it is
      redis.call('SADD', content_record(tree, held[i]) .. ':holders', id, parent) -- as `hold`
    end
  end
  redis.call('ZUNIONSTORE', process .. ':names', 1, parent_record .. ':names')
  for i = 1, #held, 2000 do -- Lua's stack holds a few thousand values
    redis.call('HSET', process .. ':fds', unpack(held, i, math.min(i + 1999, #held)))
  end
  copy_python(tree, parent, id)
end
for fd, content in pairs(shared) do
  hold(tree, id, fd, content, parent)
end
if bundle_json ~= '' then
  redis.call('HSETNX', tree .. ':programs', bundle, bundle_json)
end
if first_record ~= '' then
  redis.call('RPUSH', process .. ':journal', first_record)
end
local outputs, first = '', nil
if has_output then
  -- only the parent holds the stream: the child has no use for its own text
  local number = next_number(parent_record, 'next_fd', seen_fd)
  outputs, first = 'fd:' .. number, number
  hold(tree, parent, outputs, make_stream(tree, id, number, page_size, source, 'process', '', empty_index))
  add_words(tree, 'source', parent .. ' ' .. outputs, source_words, true)
end
local next_fd = math.max(redis.call('HGET', parent_record, 'next_fd'), seen_fd + 1)
add_words(tree, 'task', id, task_words)
enter_process(tree, id, now, state == 'ready')
redis.call('HSET', process, 'parent', parent, 'state', state, 'attempt', 0, 'losses', 0, 'kind', '',
  'program', program, 'bundle', bundle, 'input', '', 'outputs', outputs,
  'first_fd', first or next_fd, 'next_fd', next_fd, 'next_child', 1, 'started_at', now,
  'ready_at', now, unpack(set_only({ 'traceparent', traceparent, 'price', price, 'task', task })))
return answer(answers, op, { 'ok', id })
