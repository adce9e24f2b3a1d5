-- Creates a stream: an empty content in state `open`.
-- KEYS  1 tree  2 process  3 its fds  4 answer of this operation
-- ARGV  1 answer field  2 attempt  3 process id  4 page_size  5 source  6 the writer
--       7 seconds of its lease, or '' when the process itself is the writer  8 the index of an empty text
--       9 the highest number that the client has seen  10 words of the source, for search
-- ->    ok fd content | unsafe policy | gone | fenced why | quota_exceeded name limit
local done = answered(KEYS[4], ARGV[1], 2)
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2]) or unsafe(KEYS[1])
if refused then
  return refused
end
local tree, id = KEYS[1], ARGV[3]
local limits = limits_of(tree)
if redis.call('HGET', tree, 'fds') + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end

local number = next_number(KEYS[2], 'next_fd', ARGV[9])
local fd = 'fd:' .. number
local content = make_stream(tree, id, number, ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
add_words(tree, 'source', id .. ' ' .. fd, ARGV[10])
hold(tree, id, fd, content)
return answer(KEYS[4], ARGV[1], { 'ok', fd, content })
