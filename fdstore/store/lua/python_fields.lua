-- Stores fields of a running call: recorded answers, or pieces of a state that `python_flip` makes the current one.
-- KEYS  1 process  2 state of its programs
-- ARGV  1 attempt  2 call  3 version of the pieces, '' for answers  4.. number, value...
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local state = python_head(KEYS[2])
if state.call ~= ARGV[2] then
  return { 'fenced', 'another call of run_python has replaced this one' }
end
local prefix = ARGV[3] == '' and python_answers(state) or ARGV[3] .. '/'
for i = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], prefix .. ARGV[i], ARGV[i + 1])
end
return { 'ok' }
