-- Sets a field of a tool call's record unless it exists, for repeats of the call.
-- KEYS process calls
-- ARGV attempt field value
-- ->    ok stored-value | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
redis.call('HSETNX', calls, field, value)
return { 'ok', redis.call('HGET', calls, field) }
