-- Gives the parent of a process what the process holds beyond it: descriptors by reference, and the session of its
-- programs. A repeat changes nothing. A number that the parent has given to another content meanwhile means that
-- content; then the content gets a new number, and the session, whose variables name the old one, stays behind.
-- KEYS tree process parent_record
-- ARGV attempt id parent
-- ->    ok | gone | fenced why
local refused = refusal(process, attempt)
if refused then
  return refused
end
if refusal(parent_record, '') then
  return { 'ok' } -- the parent has ended: its table is final
end
local there, held, is_taken = {}, {}, false
local flat = redis.call('HGETALL', parent_record .. ':fds')
for i = 1, #flat, 2 do
  there[flat[i]], held[flat[i + 1]] = flat[i + 1], true
end
local next_fd = math.max(redis.call('HGET', parent_record, 'next_fd'), redis.call('HGET', process, 'next_fd'))
redis.call('HSET', parent_record, 'next_fd', string.format('%.0f', next_fd))
flat = redis.call('HGETALL', process .. ':fds')
for i = 1, #flat, 2 do
  local fd, content = flat[i], flat[i + 1]
  local other = there[fd] ~= content and there[fd]
  local is_number = string.sub(fd, 1, 3) == 'fd:'
  is_taken = is_taken or (other and is_number)
  if not held[content] and string.match(content, '^.+/%d+$') then
    if other and is_number then
      fd = 'fd:' .. next_number(parent_record, 'next_fd')
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
