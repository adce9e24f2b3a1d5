-- Stores fields of a running call: recorded answers, or pieces of a state that `python_flip` makes the current one.
-- KEYS process python
-- ARGV attempt call version values...
--   python   state of its programs
--   version  version of the pieces, '' for answers
--   values   number, value...
-- ->    ok | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local state = python_head(python)
if state.call ~= call then
  return { 'fenced', 'another call of run_python has replaced this one' }
end
local prefix = version == '' and python_answers(state) or version .. '/'
for i = values_from, #ARGV, 2 do
  redis.call('HSET', python, prefix .. ARGV[i], ARGV[i + 1])
end
return { 'ok' }
