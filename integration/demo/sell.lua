-- SPDX-License-Identifier: Apache-2.0

-- luacheck: read globals KEYS ARGV
-- Write the stock that is left and the order, unless a higher fencing token was here.
-- KEYS    stock, token, orders
-- ARGV    fence, left
-- Reply   1 sold | 0 refused
local seen = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', 3600)
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('EXPIRE', KEYS[3], 3600)
return 1
