-- Begins a call of a program, unless it runs already: its first begin wins. It replaces another call.
-- KEYS process python
-- ARGV attempt call seed op
--   python  state of its programs
--   op      id of this operation, the version of the call's answers
-- ->    ok head | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local state = python_head(python)
if state.call ~= call then
  state.call, state.seed, state.run, state.began = call, seed, op, stamp(seconds_now())
  state.snapshot, state.snapshot_chunks = nil, nil
  put_python_head(python, state)
end
return { 'ok', redis.call('HGET', python, 'head') }
