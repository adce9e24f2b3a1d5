-- Sets a field of a tool call's record unless it exists, for repeats of the call.
-- KEYS  1 process  2 its calls
-- ARGV  1 attempt  2 field  3 value
-- ->    ok stored-value | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3])
return { 'ok', redis.call('HGET', KEYS[2], ARGV[2]) }
