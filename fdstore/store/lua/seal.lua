-- Ends a stream at its writer's request: EOF, or a failure with its reason.
-- KEYS  1 tree  2 process  3 content  4 answer of this operation
-- ARGV  1 answer field  2 attempt  3 content id  4 fd  5 the writer
--       6 'sealed'|'broken'  7 exit code or ''  8 reason or ''  9 exit codes of a chain of pipelines or ''
-- ->    ok | gone | fenced why | stream_closed fd state
local done = answered(KEYS[4], ARGV[1], 0)
if done then
  return done
end
local refused = refusal(KEYS[2], ARGV[2])
if refused then
  return refused
end
local tree = KEYS[1]
local state, writer, leased, producer =
  unpack(redis.call('HMGET', KEYS[3], 'state', 'writer', 'writer_until', 'producer'))
if state ~= 'open' then
  return { 'stream_closed', ARGV[4], state or 'closed' }
end
if process_record(tree, producer) ~= KEYS[2] or leased and leased ~= '' and writer ~= ARGV[5] then
  return { 'fenced', ARGV[4] .. ' has another writer' }
end
redis.call('HSET', tree, 'used_at', stamp(seconds_now()))
end_stream(tree, ARGV[3], ARGV[6], ARGV[7], ARGV[8], ARGV[9])
return answer(KEYS[4], ARGV[1], { 'ok' })
