# SPDX-License-Identifier: Apache-2.0

require_relative "../ruby/holdfast"

$stdout.sync = true
host, port, mode, NAME, lease, wait, *rest = ARGV
R = Redis.new(host: host, port: port.to_i, timeout: lease.to_f / 4000)
TERMS = { lease: lease.to_i / 1000.0, wait: wait == "-1" ? nil : wait.to_i / 1000.0,
          limit: ENV["LIMIT"], shared: ENV["SHARED"] }.freeze

def hold
  Holdfast.lock(R, NAME, **TERMS) do |lock|
    exit unless fork
    Process.wait
    puts "held #{lock.token} #{lock.slot}"
    lock.check until IO.select([$stdin], nil, nil, 0.01)
  end
  puts "released"
end

def work(counter, rounds)
  rounds.to_i.times do
    Holdfast.lock(R, NAME, **TERMS) do |lock|
      n = R.get(counter).to_i
      lock.check
      R.set(counter, n + 1)
      puts lock.token
    end
  end
end

begin
  mode == "hold" ? hold : work(*rest)
rescue Holdfast::Busy
  puts "busy"
rescue Holdfast::Lost
  puts "lost"
end
