-- Appends records to a process's journal at a known position, so that a repeat writes nothing twice, and counts
-- the models' answers among them. Each gets its time, `at_ms`. Without records it only returns the length and the
-- limit reached.
-- KEYS process records tree
-- ARGV id attempt position:number answers input_tokens output_tokens cached_tokens cache_written_tokens error_words
--      new_records...
--   records               its journal
--   position              position of the first record (0-based)
--   answers               answers of models
--   input_tokens          tokens of these answers, cached ones included
--   cached_tokens         of the input those read from a cache
--   cache_written_tokens  and those written to one
--   error_words           words of the errors of calls among them, for search
--   new_records           records (JSON)
-- ->    ok length [name limit used: a limit of model calls or tokens that the tree has reached] | gone
--       | fenced why
-- Whether this is what `stamped` made of the record, at any time.
local function is_stored(stored, record)
  return stored == stamped(record, string.match(string.sub(stored, -24), '"at_ms":(%d+)}$') or '')
end

local length = redis.call('LLEN', records)
local refused = refusal(process, attempt)
if refused then
  return refused
end
local count = #ARGV + 1 - new_records_from
local repeated = count > 0 and length == position + count
  and is_stored(redis.call('LINDEX', records, position), ARGV[new_records_from])
if not repeated and length ~= position then
  return { 'fenced', 'its journal has ' .. length .. ' records, not ' .. position .. ': another writer appended' }
end
if not repeated and count > 0 then
  if answers ~= '0' then
    count_answers(tree, answers, input_tokens + output_tokens)
    count_tokens(process, { input_tokens, output_tokens, cached_tokens, cache_written_tokens })
  end
  add_words(tree, 'error', id, error_words, true)
  local now = milliseconds_now()
  for i = new_records_from, #ARGV do
    ARGV[i] = stamped(ARGV[i], now)
  end
  for i = new_records_from, #ARGV, 2000 do -- Lua's stack holds some thousands
    length = redis.call('RPUSH', records, unpack(ARGV, i, math.min(i + 1999, #ARGV)))
  end
end
local name, limit, used = budget_reached(tree)
if not name then
  name, limit, used = day_limit(tree)
end
return { 'ok', length, name, limit, used }
