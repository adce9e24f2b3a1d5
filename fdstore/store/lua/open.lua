-- Creates a stream: an empty content in state `open`.
-- KEYS tree process answers
-- ARGV op attempt id page_size source writer lease_s empty_index seen_fd words
--   answers      where the reply to `op` is kept
--   lease_s      seconds of its lease, or '' when the process itself is the writer
--   empty_index  the index of an empty text
--   seen_fd      the highest number that the client has seen
--   words        words of the source, for search
-- ->    ok fd content | unsafe policy | gone | fenced why | quota_exceeded name limit
local done = answered(answers, op, 2)
if done then
  return done
end
local refused = refusal(process, attempt) or unsafe(tree)
if refused then
  return refused
end
local limits = limits_of(tree)
if redis.call('HGET', tree, 'fds') + 1 > limits.tree_fds then
  return { 'quota_exceeded', 'tree_fds', limits.tree_fds }
end

local number = next_number(process, 'next_fd', seen_fd)
local fd = 'fd:' .. number
local content = make_stream(tree, id, number, page_size, source, writer, lease_s, empty_index)
add_words(tree, 'source', id .. ' ' .. fd, words, true)
hold(tree, id, fd, content)
return answer(answers, op, { 'ok', fd, content })
