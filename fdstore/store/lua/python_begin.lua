-- Begins a call of a program, unless it runs already: its first begin wins. It replaces another call.
-- KEYS  1 process  2 state of its programs
-- ARGV  1 attempt  2 call  3 seed  4 id of this operation, the version of the call's answers
-- ->    ok head | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local state = python_head(KEYS[2])
if state.call ~= ARGV[2] then
  state.call, state.seed, state.run, state.began = ARGV[2], ARGV[3], ARGV[4], stamp(seconds_now())
  state.snapshot, state.snapshot_chunks = nil, nil
  put_python_head(KEYS[2], state)
end
return { 'ok', redis.call('HGET', KEYS[2], 'head') }
