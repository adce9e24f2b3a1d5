-- Runs commands that take one key each, all or none. Only for a network that loses the replies to a
-- transaction again and again: texts that pass through a script take twice the time.
-- KEYS  one for each command
-- ARGV  for each command: its name, how many arguments follow, the arguments
-- ->    ok
local PART = 1000 -- arguments of one call; a script cannot pass on more than some thousands
local at = 1
for _, key in ipairs(KEYS) do
  local last = at + 1 + ARGV[at + 1]
  for first = at + 2, last, PART do
    redis.call(ARGV[at], key, unpack(ARGV, first, math.min(first + PART - 1, last)))
  end
  at = last + 1
end
return { 'ok' }
