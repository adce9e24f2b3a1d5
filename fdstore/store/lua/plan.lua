-- Records what a tool call is about to do, unless another attempt has recorded its plan in between.
-- KEYS process calls
-- ARGV attempt field before new
--   before  the expected previous plan ('' for none)
--   new     the new plan
-- ->    ok stored-plan | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
local stored = redis.call('HGET', calls, field) or ''
if stored ~= before then
  return { 'ok', stored }
end
redis.call('HSET', calls, field, new)
return { 'ok', new }
