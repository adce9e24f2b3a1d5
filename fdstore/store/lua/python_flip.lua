-- Replaces the snapshot of a running call, or ends the call. One write makes the new state the current one; what
-- belongs to none, also pieces that a dead writer left, is removed after it. With a call end the questions to a person
-- that its code does not wait for any more.
-- KEYS process python calls tree questions
-- ARGV attempt call what version chunks:number outcome withdrawn pieces...
--   python   state of its programs
--   what     'snapshot', 'session' (the call ends with a new session) or 'end' (the session stays)
--   version  version of the new state, the id of this operation
--   chunks   how many pieces it has
--   outcome  result of the call, '' for none
--   withdrawn  numbers of questions, separated by spaces
--   pieces   its pieces, or nothing if `python_fields` has stored them
-- ->    ok | gone | fenced why | lost
local refused = refusal(process, attempt)
if refused then
  return refused
end
local state = python_head(python)
local before = { session = state.session, session_of = state.session_of }
if what ~= 'snapshot' and state.flip == version or what == 'snapshot' and state.snapshot == version then
  return { 'ok' } -- repeated, because its reply was lost
end
if state.call ~= call then
  return { 'fenced', 'another call of run_python has replaced this one' }
end
if not ARGV[pieces_from] then
  for i = 0, chunks - 1 do
    if redis.call('HEXISTS', python, version .. '/' .. i) == 0 then
      return { 'lost' }
    end
  end
end
redis.call('HDEL', python, '') -- a full Redis refuses a script that begins with an addition, and an end frees memory
if outcome ~= '' then
  redis.call('HSETNX', calls, call .. '/outcome', outcome)
end
for i = pieces_from, #ARGV do
  redis.call('HSET', python, version .. '/' .. i - pieces_from, ARGV[i])
end
local id = string.sub(process, #tree + 2)
withdraw_numbered(tree, id, questions, withdrawn)
if what == 'snapshot' then
  state.snapshot, state.snapshot_chunks = version, string.format('%d', chunks)
else
  if what == 'session' then
    state.session, state.session_chunks, state.session_of = version, string.format('%d', chunks), nil
  end
  for _, name in ipairs({ 'call', 'seed', 'run', 'began', 'snapshot', 'snapshot_chunks' }) do
    state[name] = nil
  end
  state.flip = version
end
replace_python(tree, id, before, state)
return { 'ok' }
