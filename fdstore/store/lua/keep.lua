-- Keeps what a tool call came to, for a repeat of the same call. The first answer stays.
-- KEYS  1 process  2 its calls
-- ARGV  1 attempt  2 field  3 outcome (JSON)
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3])
return { 'ok' }
