-- Ends a stream at its writer's request: EOF, or a failure with its reason.
-- KEYS tree process content answers
-- ARGV op attempt content_id fd by final exit_code reason chain_codes
--   answers      where the reply to `op` is kept
--   by           the writer
--   final        'sealed'|'broken'
--   exit_code    exit code or ''
--   chain_codes  exit codes of a chain of pipelines or ''
-- ->    ok | gone | fenced why | stream_closed fd state
local done = answered(answers, op, 0)
if done then
  return done
end
local refused = refusal(process, attempt)
if refused then
  return refused
end
local state, writer, leased, producer =
  unpack(redis.call('HMGET', content, 'state', 'writer', 'writer_until', 'producer'))
if state ~= 'open' then
  return { 'stream_closed', fd, state or 'closed' }
end
if process_record(tree, producer) ~= process or leased and leased ~= '' and writer ~= by then
  return { 'fenced', fd .. ' has another writer' }
end
redis.call('HSET', tree, 'used_at', stamp(seconds_now()))
end_stream(tree, content_id, final, exit_code, reason, chain_codes)
return answer(answers, op, { 'ok' })
