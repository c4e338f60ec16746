require "redis"

host, port, mode, *rest = ARGV
R = Redis.new(host: host, port: port.to_i)

def work(lock, counter, name, rounds)
  rounds.to_i.times do |i|
    owner = "#{name} #{i}"
    got = nil
    sleep 0.002 until (got = R.call("FCALL", "holdfast_wait", 1, lock, owner, 30000, ""))[0] == 1
    R.set(counter, R.get(counter).to_i + 1)
    puts got[1]
    abort "lost the lock" unless R.call("FCALL", "holdfast_release", 1, lock, owner) == [1, 0]
  end
end

if mode == "call"
  puts R.call("FCALL", rest[0], 1, *rest[1..])
else
  work(*rest)
end
