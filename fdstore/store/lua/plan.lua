-- Notes what a tool call is about to do, unless another attempt has noted something meanwhile.
-- KEYS  1 process  2 its calls
-- ARGV  1 attempt  2 field  3 what was noted before ('' for nothing)  4 what it is about to do
-- ->    ok what-stands | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local noted = redis.call('HGET', KEYS[2], ARGV[2]) or ''
if noted ~= ARGV[3] then
  return { 'ok', noted }
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
return { 'ok', ARGV[4] }
