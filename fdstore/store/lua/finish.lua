-- Ends a process: passes its answer to its parent and makes ancestors ready that waited for it alone, in one step.
-- Before that, a large table is released a bounded piece at a time, so that Redis is not blocked for long: if the
-- caller dies between two pieces, the process has not ended.
-- KEYS tree process
-- ARGV id attempt_now final exit_code reason piece:number short_answer answer_name broken_as answer_words
--      reason_words cursor
--   attempt_now   attempt
--   final         final state
--   exit_code     exit code or ''
--   piece         how many descriptors to release at a time, 0 to keep them
--   short_answer  short answer ('' for none)
--   answer_name   fd that holds a long answer or ''
--   broken_as     the reason with which its open streams break; an agent's text is sealed if the agent exits
--   answer_words  words of its answer, short or long, for search
--   reason_words  words of its reason, for search
--   cursor        cursor of the last piece of the table that was released, '0' at first
-- ->    ok state ancestors-to-wake | ok cursor: more is to be released | gone | fenced why
local state, attempt, parent, outputs, kind =
  unpack(redis.call('HMGET', process, 'state', 'attempt', 'parent', 'outputs', 'kind'))
if not state then
  return { 'gone' }
end
if ENDED[state] then
  if attempt_now == '' or attempt_now == attempt then
    -- a client that ends an ended process releases the descriptors that its worker kept
    local releases = attempt_now == '' and piece > 0
    local more = releases and release_piece(tree, id, piece, '', cursor)
    if releases and not more then
      despite_damage('the programs of', id, release_python, tree, id)
    end
    return more and { 'ok', more } or { 'ok', state, '' }
  end
  return { 'fenced', 'it has ended (' .. state .. ')' }
end
local refused = refusal(process, attempt_now)
if refused then
  return refused
end
local fds = process .. ':fds'
local content = answer_name ~= '' and redis.call('HGET', fds, answer_name)
if piece > 0 and redis.call('HLEN', fds) > piece then
  return { 'ok', release_piece(tree, id, piece, answer_name, cursor) or '0' }
end

local now = stamp(seconds_now())
redis.call('HDEL', process, 'lease_until', 'trouble') -- removing first, as in write_end
add_words(tree, 'answer', id, answer_words)
add_words(tree, 'error', id, reason_words)
local answer_fd = ''
local function pass_answer()
  local key = process_record(tree, parent)
  local parent_state = redis.call('HGET', key, 'state')
  if answer_name ~= '' and answer_name == outputs then
    answer_fd = outputs -- the parent holds it already
  elseif content and parent_state and not ENDED[parent_state] then
    local fd = 'fd:' .. next_number(key, 'next_fd')
    hold(tree, parent, fd, content, id)
    answer_fd = fd
  end
end
local function seal(written)
  if redis.call('HGET', content_record(tree, written), 'state') == 'open' then
    end_stream(tree, written, 'sealed', exit_code, '')
  end
end
if parent then
  despite_damage('process', parent, pass_answer)
elseif content then
  answer_fd = answer_name
end
if final == 'exited' and outputs and kind ~= 'pipeline' then
  for fd in items_of(outputs, 'fd:(%d+)') do
    despite_damage('content', id .. '/' .. fd, seal, id .. '/' .. fd)
  end
end
local ended = { [id] = true }
despite_damage('the asks of', id, function()
  for lane in items_of(redis.call('HGET', process .. ':asks', 'lanes'), '%S+') do
    ended[lane] = true -- its end cancels them
  end
end)
write_end(tree, id, final, now, broken_as, exit_code, reason, short_answer, answer_fd)
local wake = notify_ancestors(tree, id, ended, now)
if piece > 0 then
  despite_damage('the table of', id, release_all, tree, id)
  despite_damage('the programs of', id, release_python, tree, id)
end
return { 'ok', final, wake }
