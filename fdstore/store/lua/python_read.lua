-- Reads the state of a process's programs (see python_state.py): its head, and as many of its fields as fit.
-- KEYS  1 its state
-- ARGV  1 a call: its snapshot and answers are read if it runs  2 the bytes after which only names are returned
-- ->    ok head|'' {name, value, ...} {names of the other fields...}
local head = redis.call('HGET', KEYS[1], 'head')
if not head then
  return { 'ok', '', {}, {} }
end
local state, names = python_head(KEYS[1]), {}
local function add_chunks(version, count)
  for i = 0, counted(count) - 1 do
    names[#names + 1] = version .. '/' .. i
  end
end
if state.call == ARGV[1] then
  local answers = python_answers(state)
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(name, 1, #answers) == answers then
      names[#names + 1] = name
    end
  end
  add_chunks(state.snapshot, state.snapshot_chunks)
end
add_chunks(state.session, state.session_chunks)
local found, others, left = {}, {}, tonumber(ARGV[2])
for _, name in ipairs(names) do
  local value = left > 0 and redis.call('HGET', KEYS[1], name)
  if value then
    found[#found + 1] = name
    found[#found + 1] = value
    left = left - #value
  else
    others[#others + 1] = name -- also a missing one: the client notices
  end
end
return { 'ok', head, found, others }
