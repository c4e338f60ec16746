# SPDX-License-Identifier: Apache-2.0
# Workers count in Redis, one at a time. Run it in two terminals: ruby example.rb [URL]
require_relative "holdfast"

redis = Redis.new(url: ARGV[0] || "redis://127.0.0.1:6379", timeout: 2)
10.times do
  Holdfast.lock(redis, "example", lease: 10, wait: 60) do |lock|
    n = redis.get("example:count").to_i + 1
    sleep 0.2 # the work
    lock.check
    redis.set("example:count", n)
    puts "count #{n} with the fencing token #{lock.token}"
  end
end
