-- Appends records to a process's journal at a known position, so that a repeat writes nothing twice.
-- KEYS  1 process  2 its journal
-- ARGV  1 attempt  2 position of the first record (0-based)  3.. records (JSON)
-- ->    ok length | gone | fenced why
local length = redis.call('LLEN', KEYS[2])
local position = tonumber(ARGV[2])
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
if length == position + #ARGV - 2 and redis.call('LINDEX', KEYS[2], position) == ARGV[3] then
  return { 'ok', length }
end
if length ~= position then
  return { 'fenced', 'its journal has ' .. length .. ' records, not ' .. position .. ': somebody else writes it' }
end
return { 'ok', redis.call('RPUSH', KEYS[2], unpack(ARGV, 3)) }
