#!lua name=bench_floor
-- SPDX-License-Identifier: Apache-2.0

-- Two bare functions: one takes a lock and mints a token for it, one gives it back. No line, no checks, no
-- renewal. A lock with tokens by FCALL cannot cost the server less.

redis.register_function('bench_take', function(keys, args)
  local t = redis.call('TIME')
  local token = t[1] * 1000000 + t[2]
  if not redis.call('SET', keys[1], string.format('%d ', token) .. args[1], 'NX', 'PX', args[2]) then
    return 0
  end
  return token
end)

redis.register_function('bench_give', function(keys, args)
  local value = redis.call('GET', keys[1])
  if not value or value:match(' (.*)') ~= args[1] then
    return 0
  end
  return redis.call('DEL', keys[1])
end)
