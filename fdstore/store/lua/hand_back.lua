-- Gives the parent of a process what the process holds beyond it: descriptors by reference, and the session of its
-- programs. A repeat changes nothing. A number that the parent has given to another content meanwhile means that
-- content; then the content gets a new number, and the session, whose variables name the old one, stays behind.
-- KEYS  1 tree  2 process  3 parent
-- ARGV  1 attempt  2 process id  3 parent id
-- ->    ok | gone | fenced why
local refused = refusal(KEYS[2], ARGV[1])
if refused then
  return refused
end
if refusal(KEYS[3], '') then
  return { 'ok' } -- the parent has ended: its table is final
end
local tree, id, parent = KEYS[1], ARGV[2], ARGV[3]
local there, held, is_taken = {}, {}, false
local flat = redis.call('HGETALL', KEYS[3] .. ':fds')
for i = 1, #flat, 2 do
  there[flat[i]], held[flat[i + 1]] = flat[i + 1], true
end
local next_fd = math.max(redis.call('HGET', KEYS[3], 'next_fd'), redis.call('HGET', KEYS[2], 'next_fd'))
redis.call('HSET', KEYS[3], 'next_fd', string.format('%.0f', next_fd))
flat = redis.call('HGETALL', KEYS[2] .. ':fds')
for i = 1, #flat, 2 do
  local fd, content = flat[i], flat[i + 1]
  local other = there[fd] ~= content and there[fd]
  local is_number = string.sub(fd, 1, 3) == 'fd:'
  is_taken = is_taken or (other and is_number)
  if not held[content] and string.match(content, '^.+/%d+$') then
    if other and is_number then
      fd = 'fd:' .. next_number(KEYS[3], 'next_fd')
    end
    hold(tree, parent, fd, content, id)
    if other and not is_number and string.match(other, '^.+/%d+$') then
      release(tree, parent, { other }) -- a name means the later content
    end
  end
end
if not is_taken then
  copy_python(tree, id, parent)
end
return { 'ok' }
