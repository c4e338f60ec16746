#!lua name=holdfast_bench

-- What a lock costs the server, for the benchmark's capacity workloads. No lock to use: see functions/holdfast.lua.

-- The bare minimum as a pair of functions: KEYS lock, ARGV owner, ttl_ms.
redis.register_function('bench_bare_acquire', function(keys, args)
  return redis.call('SET', keys[1], args[1], 'NX', 'PX', args[2])
end)

-- KEYS lock, ARGV owner.
redis.register_function('bench_bare_release', function(keys, args)
  if redis.call('GET', keys[1]) == args[1] then return redis.call('DEL', keys[1]) end
  return 0
end)

-- The redis.call()s of holdfast_acquire and holdfast_release, one more in each step, and nothing else.
-- KEYS lock, ARGV owner, ttl_ms.
local function step(n)
  return function(keys, args)
    local key, ends = keys[1], 0
    if n >= 1 then redis.call('HLEN', key) end
    if n >= 2 then
      local t = redis.call('TIME')
      ends = t[1] * 1000 + math.floor(t[2] / 1000) + args[2]
    end
    if n >= 3 then redis.call('HSET', key, 'owner', args[1], 'until', ends, 'fence', ends * 1000) end
    if n >= 4 then redis.call('PEXPIREAT', key, ends) end
    return { 1, ends, args[2], 1 }
  end
end

redis.register_function('bench_acquire_0', step(0))
redis.register_function('bench_acquire_1', step(1))
redis.register_function('bench_acquire_2', step(2))
redis.register_function('bench_acquire_3', step(3))
redis.register_function('bench_acquire_4', step(4))

redis.register_function('bench_release_1', function(keys)
  redis.call('HMGET', keys[1], 'owner', 'until', 'fence', 'state')
  return { 1, 0 }
end)

redis.register_function('bench_release_2', function(keys, args)
  local v = redis.call('HMGET', keys[1], 'owner', 'until', 'fence', 'state')
  if v[1] == args[1] then redis.call('DEL', keys[1]) end
  return { 1, 0 }
end)
