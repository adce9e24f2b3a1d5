-- Creates a pipeline: a child process that runs commands, and the streams that it writes. Their numbers mean the
-- same in parent and child.
-- KEYS  1 tree  2 parent  3 parent's fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt of the parent  3 parent id  4 brief (JSON)  5 page size
--       6 index of an empty text  7 input: '' for none, 'new' for a stream that the parent writes, or an fd
--       8 source of a new input  9 the highest descriptor and 10 child number that the client has seen
--       11 traceparent of its creator, '' for none  12 words of its commands, for search
--       13.. of each of its streams, output, stderr, then each tee: the source, its words
-- ->    ok process input fd... | unsafe policy | gone | fenced why | spawn_limit name limit | quota_exceeded name limit
--       | not_found id known...
local done = answered(KEYS[4], ARGV[1], 4)
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2]) or unsafe(KEYS[1]) or no_room(KEYS[1], ARGV[3])
if refused then
  return refused
end
local tree, parent, input = KEYS[1], ARGV[3], ARGV[7]
local limits = limits_of(tree)
if redis.call('HGET', tree, 'fds') + (#ARGV - 12) / 2 + (input == 'new' and 1 or 0) > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end
local source = input ~= '' and input ~= 'new' and redis.call('HGET', KEYS[3], input)
if input ~= '' and input ~= 'new' and not source then
  return not_found(KEYS[3], input)
end

local now = stamp(seconds_now())
local id = parent .. '.' .. next_number(KEYS[2], 'next_child', ARGV[10])
local process = process_record(tree, id)
clear(process)
if input == 'new' then
  local number = next_number(KEYS[2], 'next_fd', ARGV[9])
  input = 'fd:' .. number
  source = make_stream(tree, parent, number, ARGV[5], ARGV[8], 'process', '', ARGV[6])
  hold(tree, parent, input, source)
end
if source then
  hold(tree, id, input, source, parent)
end
local written, first = {}, nil
for i = 13, #ARGV, 2 do
  local number = next_number(KEYS[2], 'next_fd', ARGV[9])
  local fd = 'fd:' .. number
  local content = make_stream(tree, id, number, ARGV[5], ARGV[i], 'process', '', ARGV[6])
  -- the pipeline does not hold its own streams, so that it notices when all readers have closed one
  add_words(tree, 'source', parent .. ' ' .. fd, ARGV[i + 1])
  hold(tree, parent, fd, content)
  written[#written + 1] = fd
  first = first or number
end
local next_fd = redis.call('HGET', KEYS[2], 'next_fd')
redis.call('RPUSH', process .. ':journal', ARGV[4])
add_words(tree, 'task', id, ARGV[12])
enter_process(tree, id, now, true)
redis.call('HSET', process, 'parent', parent, 'state', 'ready', 'attempt', 0, 'losses', 0, 'kind', 'pipeline',
  'program', ARGV[13], 'bundle', '', 'input', input, 'outputs', table.concat(written, ' '),
  'first_fd', first or next_fd, 'next_fd', next_fd, 'next_child', 1, 'started_at', now,
  'ready_at', now, unpack(ARGV[11] ~= '' and { 'traceparent', ARGV[11] } or {}))
return answer(KEYS[4], ARGV[1], { 'ok', id, input, unpack(written) })
