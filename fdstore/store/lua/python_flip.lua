-- Replaces the snapshot of a running call, or ends the call. One write makes the new state the current one; what
-- belongs to none, also pieces that a dead writer left, is removed after it.
-- KEYS  1 process  2 state of its programs  3 its calls  4 tree
-- ARGV  1 attempt  2 call  3 'snapshot', 'session' (the call ends with a new session) or 'end' (the session stays)
--       4 version of the new state, the id of this operation  5 how many pieces it has  6 result of the call, '' for none
--       7.. its pieces, or nothing if `python_fields` has stored them
-- ->    ok | gone | fenced why | lost
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local state, version, chunks = python_head(KEYS[2]), ARGV[4], tonumber(ARGV[5])
local before = { session = state.session, session_of = state.session_of }
if ARGV[3] ~= 'snapshot' and state.flip == version or ARGV[3] == 'snapshot' and state.snapshot == version then
  return { 'ok' } -- repeated, because its reply was lost
end
if state.call ~= ARGV[2] then
  return { 'fenced', 'another call of run_python has replaced this one' }
end
if #ARGV == 6 then
  for i = 0, chunks - 1 do
    if redis.call('HEXISTS', KEYS[2], version .. '/' .. i) == 0 then
      return { 'lost' }
    end
  end
end
redis.call('HDEL', KEYS[2], '') -- a full Redis refuses a script that begins with an addition, and an end frees memory
if ARGV[6] ~= '' then
  redis.call('HSETNX', KEYS[3], ARGV[2] .. '/outcome', ARGV[6])
end
for i = 7, #ARGV do
  redis.call('HSET', KEYS[2], version .. '/' .. i - 7, ARGV[i])
end
if ARGV[3] == 'snapshot' then
  state.snapshot, state.snapshot_chunks = version, ARGV[5]
else
  if ARGV[3] == 'session' then
    state.session, state.session_chunks, state.session_of = version, ARGV[5], nil
  end
  for _, name in ipairs({ 'call', 'seed', 'run', 'began', 'snapshot', 'snapshot_chunks' }) do
    state[name] = nil
  end
  state.flip = version
end
replace_python(KEYS[4], string.sub(KEYS[1], #KEYS[4] + 2), before, state)
return { 'ok' }
