-- Records what a tool call is about to do, unless another attempt has recorded its plan in between.
-- KEYS  1 process  2 its calls
-- ARGV  1 attempt  2 field  3 the expected previous plan ('' for none)  4 the new plan
-- ->    ok stored-plan | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local stored = redis.call('HGET', KEYS[2], ARGV[2]) or ''
if stored ~= ARGV[3] then
  return { 'ok', stored }
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
return { 'ok', ARGV[4] }
