#!lua name=holdfast_fenced
-- SPDX-License-Identifier: Apache-2.0
-- Holdfast: writes that a fencing token must be new enough for, as a Redis Functions library of its
-- own. The contract is FENCED.md.
--
-- Two keys of one hash slot: the resource, of the type that the commands have that it is written
-- with, and the fence: a plain string, the newest token that was seen. So the resource is read with
-- any command, and the fence stays when the resource is deleted or expires.
--
-- A call checks everything first, then raises the fence, and writes the resource last: what fails
-- in between leaves a fence that is too high for older holders, and never one that is too low.

local VERSION = '1.0.0'

local MAX_FENCE = 2 ^ 53 - 1      -- of a token; also the largest integer that is counted with
local MAX_TTL_MS = 31536000000    -- a year

-- They do not exist while a library loads.
local call, try

---- errors and arguments -------------------------------------------------------------------------

local function fail(problem)
  error({ holdfast = problem }, 0)
end

-- Nothing of Lua's own reaches the caller: an error becomes a reply with a stable first word.
local function shield(body)
  return function(keys, args)
    call, try = redis.call, redis.pcall
    local ok, reply = pcall(body, keys, args)
    if ok then return reply end
    local problem = type(reply) == 'table' and (reply.holdfast or reply.err) or reply
    if type(reply) == 'table' and reply.holdfast then return redis.error_reply(problem) end
    problem = tostring(problem):gsub('^@?user_function:%d+: ', '')
    return redis.error_reply('HFSERVER ' .. problem:gsub('[\r\n]', ' '))
  end
end

local function only_fence(keys)
  if #keys ~= 1 then fail('HFARG exactly one key is needed, the fence') end
  if keys[1] == '' then fail('HFARG fence key must not be empty') end
  return keys[1]
end

local function both_keys(keys)
  if #keys ~= 2 then fail('HFARG exactly two keys are needed, the resource and its fence') end
  if keys[1] == '' then fail('HFARG resource key must not be empty') end
  if keys[2] == '' then fail('HFARG fence key must not be empty') end
  if keys[1] == keys[2] then fail('HFARG fence key must not be the resource') end
  return keys[1], keys[2]
end

local function arity(args, least, most, names)
  if #args < least or #args > most then
    fail('HFARG wrong number of arguments, expected: ' .. names)
  end
end

-- tostring and .. round numbers to 14 digits.
local function digits(n) return string.format('%.0f', n) end

-- The number that a text says, or nil. tonumber alone accepts 'inf', '0x10' and '1e18' too.
local function natural(text, most)
  local n = #text <= 16 and text:find('^[1-9]%d*$') and tonumber(text)
  if n and n <= most then return n end
end

local function integer(text)
  if text == '0' then return 0 end
  if text:sub(1, 1) ~= '-' then return natural(text, MAX_FENCE) end
  local n = natural(text:sub(2), MAX_FENCE)
  return n and -n
end

local function natural_arg(value, name, most)
  local n = natural(value, most)
  if not n then fail('HFARG ' .. name .. ' must be an integer from 1 to ' .. digits(most)) end
  return n
end

local function token_arg(value) return natural_arg(value, 'token', MAX_FENCE) end

---- the fence ------------------------------------------------------------------------------------

-- The newest token that the fence has seen, 0 for none.
local function newest(fence)
  local text = try('GET', fence)
  if type(text) == 'table' then
    if text.err:find('^WRONGTYPE') then fail('HFTYPE the fence key holds something that is not a token') end
    error(text.err, 0)
  end
  local n = not text and 0 or natural(text, MAX_FENCE)
  if not n then fail('HFTYPE the fence key holds something that is not a token') end
  return n
end

-- Remembers a token for good: a TTL that somebody gave the fence ends with an older token. An equal
-- token is written too, so that a WAIT behind a repeat covers it, and leaves the TTL as it is.
local function raise(fence, token, from)
  if token > from then
    call('SET', fence, digits(token))
  else
    call('SET', fence, digits(token), 'KEEPTTL')
  end
end

local function need_type(key, wanted)
  local found = call('TYPE', key).ok
  if found ~= wanted and found ~= 'none' then
    fail('HFTYPE the resource is a ' .. found .. ', not a ' .. wanted)
  end
end

---- the functions --------------------------------------------------------------------------------

-- holdfast_claim
-- Raises the fence and writes nothing else. What is read after it cannot be changed by an older
-- holder any more, so call it before you read what you will write back.
-- KEYS    fence
-- ARGV    token
-- Reply   1, newest | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe
local function holdfast_claim(keys, args)
  local fence = only_fence(keys)
  arity(args, 1, 1, 'token')
  local token = token_arg(args[1])
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  raise(fence, token, seen)
  return { 1, token }
end

-- holdfast_set_if
-- SET. It replaces a value of any type, and its TTL.
-- KEYS    resource, fence
-- ARGV    token, value [, ttl_ms]
-- Reply   1, newest | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the same value again, and the TTL starts anew
local function holdfast_set_if(keys, args)
  local key, fence = both_keys(keys)
  arity(args, 2, 3, 'token, value [, ttl_ms]')
  local token, value = token_arg(args[1]), args[2]
  local ttl = args[3] and natural_arg(args[3], 'ttl_ms', MAX_TTL_MS)
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  raise(fence, token, seen)
  if ttl then
    call('SET', key, value, 'PX', args[3])
  else
    call('SET', key, value)
  end
  return { 1, token }
end

-- holdfast_incrby_if
-- INCRBY. Keeps the TTL.
-- KEYS    resource, fence
-- ARGV    token, by
-- Reply   1, newest, value | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  not safe: it adds twice
local function holdfast_incrby_if(keys, args)
  local key, fence = both_keys(keys)
  arity(args, 2, 2, 'token, by')
  local token, by = token_arg(args[1]), integer(args[2])
  local bounds = '-' .. digits(MAX_FENCE) .. ' to ' .. digits(MAX_FENCE)
  if not by then fail('HFARG by must be an integer from ' .. bounds) end
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  need_type(key, 'string')
  local value = integer(call('GET', key) or '0')
  if not value then fail('HFTYPE the resource is not an integer from ' .. bounds) end
  if math.abs(value + by) > MAX_FENCE then
    fail('HFARG by must not take the resource out of ' .. bounds)
  end
  raise(fence, token, seen)
  return { 1, token, call('INCRBY', key, args[2]) }
end

-- holdfast_append_if
-- APPEND. Keeps the TTL. length is in bytes.
-- KEYS    resource, fence
-- ARGV    token, value
-- Reply   1, newest, length | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  not safe: it appends twice
local function holdfast_append_if(keys, args)
  local key, fence = both_keys(keys)
  arity(args, 2, 2, 'token, value')
  local token, value = token_arg(args[1]), args[2]
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  need_type(key, 'string')
  raise(fence, token, seen)
  return { 1, token, call('APPEND', key, value) }
end

-- holdfast_hset_if
-- HSET, of 1 to 100 fields. Keeps the TTL. added counts the fields that are new.
-- KEYS    resource, fence
-- ARGV    token, field, value [, field, value ...]
-- Reply   1, newest, added | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the same values again, but added is 0
local function holdfast_hset_if(keys, args)
  local key, fence = both_keys(keys)
  arity(args, 3, 201, 'token, field, value [, field, value ...]')
  if #args % 2 == 0 then fail('HFARG value is missing behind the last field') end
  local token = token_arg(args[1])
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  need_type(key, 'hash')
  raise(fence, token, seen)
  return { 1, token, call('HSET', key, unpack(args, 2)) }
end

-- holdfast_del_if
-- DEL of the resource, of any type. The fence stays.
-- KEYS    resource, fence
-- ARGV    token
-- Reply   1, newest, deleted | 0, newest
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: deleted is then 0
local function holdfast_del_if(keys, args)
  local key, fence = both_keys(keys)
  arity(args, 1, 1, 'token')
  local token = token_arg(args[1])
  local seen = newest(fence)
  if token < seen then return { 0, seen } end
  raise(fence, token, seen)
  return { 1, token, call('DEL', key) }
end

-- holdfast_fenced_version
-- The version of the loaded library.
-- KEYS    -
-- ARGV    -
-- Reply   version
-- Errors  HFARG
-- Repeat  safe: no writes
local function holdfast_fenced_version(keys, args)
  if #keys > 1 then fail('HFARG at most one key is possible, to choose the node') end
  arity(args, 0, 0, 'none')
  return VERSION
end

local function register(name, body, ...)
  redis.register_function{ function_name = name, callback = shield(body), flags = { ... } }
end

register('holdfast_claim', holdfast_claim)
register('holdfast_set_if', holdfast_set_if)
register('holdfast_incrby_if', holdfast_incrby_if)
register('holdfast_append_if', holdfast_append_if)
register('holdfast_hset_if', holdfast_hset_if)
register('holdfast_del_if', holdfast_del_if, 'allow-oom')
register('holdfast_fenced_version', holdfast_fenced_version, 'no-writes')
