-- Ends a process: passes its answer to its parent and makes ancestors ready that waited for it alone, in one step.
-- Before that, a large table is released a bounded piece at a time, so that Redis is not blocked for long: if the
-- caller dies between two pieces, the process has not ended.
-- KEYS  1 tree  2 process
-- ARGV  1 process id  2 attempt  3 final state  4 exit code or ''  5 reason or ''
--       6 how many descriptors to release at a time, 0 to keep them  7 short answer ('' for none)
--       8 fd that holds a long answer or ''
--       9 the reason with which its open streams break; an agent's text is sealed if the agent exits
--       10 words of its answer, short or long, and 11 of its reason, for search
--       12 cursor of the last piece of the table that was released, '0' at first
-- ->    ok state ancestors-to-wake | ok cursor: more is to be released | gone | fenced why
local tree, process, id = KEYS[1], KEYS[2], ARGV[1]
local state, attempt, parent, outputs, kind =
  unpack(redis.call('HMGET', process, 'state', 'attempt', 'parent', 'outputs', 'kind'))
if not state then
  return { 'gone' }
end
if ENDED[state] then
  if ARGV[2] == '' or ARGV[2] == attempt then
    -- a client that ends an ended process releases the descriptors that its worker kept
    local releases = ARGV[2] == '' and tonumber(ARGV[6]) > 0
    local more = releases and release_piece(tree, id, tonumber(ARGV[6]), '', ARGV[12])
    if releases and not more then
      despite_damage('the programs of', id, release_python, tree, id)
    end
    return more and { 'ok', more } or { 'ok', state, '' }
  end
  return { 'fenced', 'it has ended (' .. state .. ')' }
end
local refused = refusal(process, ARGV[2])
if refused then
  return refused
end
local fds, piece = process .. ':fds', tonumber(ARGV[6])
local content = ARGV[8] ~= '' and redis.call('HGET', fds, ARGV[8])
if piece > 0 and redis.call('HLEN', fds) > piece then
  return { 'ok', release_piece(tree, id, piece, ARGV[8], ARGV[12]) or '0' }
end

local now = stamp(seconds_now())
redis.call('HDEL', process, 'lease_until', 'trouble') -- removing first, as in write_end
add_words(tree, 'answer', id, ARGV[10])
add_words(tree, 'error', id, ARGV[11])
local answer_fd = ''
local function pass_answer()
  local key = process_record(tree, parent)
  local parent_state = redis.call('HGET', key, 'state')
  if ARGV[8] ~= '' and ARGV[8] == outputs then
    answer_fd = outputs -- the parent holds it already
  elseif content and parent_state and not ENDED[parent_state] then
    local fd = 'fd:' .. next_number(key, 'next_fd')
    hold(tree, parent, fd, content, id)
    answer_fd = fd
  end
end
local function seal(written)
  if redis.call('HGET', content_record(tree, written), 'state') == 'open' then
    end_stream(tree, written, 'sealed', ARGV[4], '')
  end
end
if parent then
  despite_damage('process', parent, pass_answer)
elseif content then
  answer_fd = ARGV[8]
end
if ARGV[3] == 'exited' and outputs and kind ~= 'pipeline' then
  for fd in string.gmatch(outputs, 'fd:(%d+)') do
    despite_damage('content', id .. '/' .. fd, seal, id .. '/' .. fd)
  end
end
local ended = { [id] = true }
despite_damage('the asks of', id, function()
  for lane in string.gmatch(redis.call('HGET', process .. ':asks', 'lanes') or '', '%S+') do
    ended[lane] = true -- its end cancels them
  end
end)
write_end(tree, id, ARGV[3], now, ARGV[9], ARGV[4], ARGV[5], ARGV[7], answer_fd)
local wake = notify_ancestors(tree, id, ended, now)
if piece > 0 then
  despite_damage('the table of', id, release_all, tree, id)
  despite_damage('the programs of', id, release_python, tree, id)
end
return { 'ok', ARGV[3], wake }
