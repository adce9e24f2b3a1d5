-- Runs a command on its key though Redis has no memory left: for what makes room, and what must go on meanwhile.
-- KEYS key
-- ARGV command arguments...
-- ->    what the command replies
redis.pcall('HDEL', key, '') -- removing first, as in write_end, if nothing: whatever the key is, it has no such field
return redis.pcall(command, key, unpack(ARGV, arguments_from))
