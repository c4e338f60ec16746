-- SPDX-License-Identifier: Apache-2.0

-- luacheck: read globals KEYS ARGV
-- Read the stock, and note who reads: from now on nobody with a lower fencing token may write. Without this note a late
-- writer could slip in between the next holder's reading and writing.
-- KEYS    stock, token
-- ARGV    fence
-- Reply   stock | -1 refused: a higher token was here
local seen = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) < seen then return -1 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', 3600)
return tonumber(redis.call('GET', KEYS[1]))
