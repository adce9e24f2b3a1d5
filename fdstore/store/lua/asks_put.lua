-- Stores fields of a process's asks unless they exist: questions, and the settings with which they are asked.
-- KEYS process asks
-- ARGV attempt fields...
--   fields  field, value...
-- ->    ok | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
for i = fields_from, #ARGV, 2 do
  redis.call('HSETNX', asks, ARGV[i], ARGV[i + 1])
end
return { 'ok' }
