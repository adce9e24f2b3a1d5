-- Creates a pipeline: a child process that runs commands, and the streams that it writes. Their numbers mean the
-- same in parent and child.
-- KEYS tree parent_record parent_table answers
-- ARGV op attempt parent brief page_size empty_index input input_source seen_fd seen_child traceparent words
--      outputs...
--   answers        where the reply to `op` is kept
--   attempt        attempt of the parent
--   brief          brief (JSON)
--   empty_index    index of an empty text
--   input          '' for none, 'new' for a stream that the parent writes, or an fd
--   input_source   source of a new input
--   seen_fd        the highest descriptor that the client has seen
--   seen_child     the highest child number that the client has seen
--   traceparent    traceparent of its creator, '' for none
--   words          words of its commands, for search
--   outputs        of each of its streams, output, stderr, then each tee: the source, its words
-- ->    ok process input fd... | unsafe policy | gone | fenced why | spawn_limit name limit | quota_exceeded name limit
--       | not_found id known...
local done = answered(answers, op, 4)
if done then
  return done
end
local refused = refusal(parent_record, attempt) or unsafe(tree) or no_room(tree, parent)
if refused then
  return refused
end
local limits = limits_of(tree)
if redis.call('HGET', tree, 'fds') + (#ARGV + 1 - outputs_from) / 2 + (input == 'new' and 1 or 0) > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
local source = input ~= '' and input ~= 'new' and redis.call('HGET', parent_table, input)
if input ~= '' and input ~= 'new' and not source then
  return not_found(parent_table, input)
end

local now = stamp(seconds_now())
local id = parent .. '.' .. next_number(parent_record, 'next_child', seen_child)
local process = process_record(tree, id)
clear(process)
if input == 'new' then
  local number = next_number(parent_record, 'next_fd', seen_fd)
  input = 'fd:' .. number
  source = make_stream(tree, parent, number, page_size, input_source, 'process', '', empty_index)
  hold(tree, parent, input, source)
end
if source then
  hold(tree, id, input, source, parent)
end
local written, first = {}, nil
for i = outputs_from, #ARGV, 2 do
  local number = next_number(parent_record, 'next_fd', seen_fd)
  local fd = 'fd:' .. number
  local content = make_stream(tree, id, number, page_size, ARGV[i], 'process', '', empty_index)
  -- the pipeline does not hold its own streams, so that it notices when all readers have closed one
  add_words(tree, 'source', parent .. ' ' .. fd, ARGV[i + 1], true)
  hold(tree, parent, fd, content)
  written[#written + 1] = fd
  first = first or number
end
local next_fd = redis.call('HGET', parent_record, 'next_fd')
redis.call('RPUSH', process .. ':journal', brief)
add_words(tree, 'task', id, words)
enter_process(tree, id, now, true)
redis.call('HSET', process, 'parent', parent, 'state', 'ready', 'attempt', 0, 'losses', 0, 'kind', 'pipeline',
  'program', ARGV[outputs_from], 'bundle', '', 'input', input, 'outputs', table.concat(written, ' '),
  'first_fd', first or next_fd, 'next_fd', next_fd, 'next_child', 1, 'started_at', now,
  'ready_at', now, unpack(traceparent ~= '' and { 'traceparent', traceparent } or {}))
return answer(answers, op, { 'ok', id, input, unpack(written) })
