-- Opens or creates the root process of a tree. Its numbers go on from those of a removed tree of this name.
-- KEYS tree process answers
-- ARGV op id is_new effective program bundle bundle_json requested half_memory known_format traceparent price
--      least_fd least_child
--   answers       where the reply to `op` is kept
--   is_new        '1' if it must not exist yet
--   effective     the effective limits (JSON)
--   bundle        bundle digest
--   bundle_json   bundle (JSON); '' for none, as the two before
--   requested     the requested limits (JSON), '' if they are the same
--   half_memory   '1' to keep below half of maxmemory
--   known_format  the format that the tree is written in
--   traceparent   traceparent of its creator, '' for none
--   price         price of the model (JSON, '' for none)
--   least_fd      the least number of its first descriptor
--   least_child   the least number of its first child
-- ->    ok 'created'|'found' limits | unsafe policy | taken | collecting
local done = answered(answers, op, 2)
if done then
  return done
end
-- both exist only after a torn log restored half a collection, see common.lua
if redis.call('EXISTS', tree .. ':collecting') == 1 and redis.call('EXISTS', tree) == 0 then
  return { 'collecting' }
end
if redis.call('EXISTS', process) == 1 then
  if is_new == '1' then
    return { 'taken' }
  end
  return { 'ok', 'found', redis.call('HGET', tree, 'limits') }
end

local refused = evicts()
if refused then
  return refused
end
-- replace the digits in both texts: Lua would format a large number with an exponent
local limits, asked = effective, requested
if half_memory == '1' then
  local half = half_of_memory()
  if half and cjson.decode(asked ~= '' and asked or limits).tree_bytes > half then
    local bounded = string.format('"tree_bytes":%.0f', half)
    limits, asked = string.gsub(limits, '"tree_bytes":%d+', bounded), string.gsub(asked, '"tree_bytes":%d+', bounded)
  end
end
local now = stamp(seconds_now())
redis.call('HSET', tree, 'created_at', now, 'used_at', now, 'checked_at', now, 'bytes', 0, 'fds', 0,
  'processes', 1, 'live', 1, 'limits', limits, 'format', known_format,
  unpack(asked ~= '' and { 'limits_asked', asked } or {}))
redis.call('ZADD', tree .. ':processes', now, id)
if program ~= '' then
  redis.call('HSET', tree .. ':programs', bundle, bundle_json)
end
local earlier = redis.call('HMGET', tree .. ':earlier:numbers', 'next_fd', 'next_child')
local first = string.format('%.0f', math.max(1, counted(earlier[1]), counted(least_fd)))
local next_child = math.max(1, counted(earlier[2]), counted(least_child))
redis.call('HSET', process, 'state', 'open', 'attempt', 0, 'losses', 0, 'program', program, 'bundle', bundle,
  'next_fd', first, 'next_child', string.format('%.0f', next_child), 'started_at', now,
  unpack(set_only({ 'first_fd', first ~= '1' and first or '', 'traceparent', traceparent, 'price', price })))
return answer(answers, op, { 'ok', 'created', limits })
