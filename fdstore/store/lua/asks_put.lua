-- Stores fields of a process's asks unless they exist: questions, and the settings with which they are asked.
-- KEYS  1 process  2 its asks
-- ARGV  1 attempt  2.. field, value...
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
for i = 2, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
end
return { 'ok' }
