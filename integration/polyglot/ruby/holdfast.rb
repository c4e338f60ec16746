# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

require "redis"
require "securerandom"
require "socket"

# A distributed lock on Redis 7 or Valkey: Holdfast's functions library over redis-rb.
#
#     Holdfast.lock(redis, "order:42", lease: 30, wait: 10) do |lock|
#       lock.check                       # before each step: raises Holdfast::Lost
#       store(part, fence: lock.token)   # store refuses a token below one that it has seen
#     end
#
# The key is "lock:order:42", as the Go client's. A thread renews the lock. It can be lost all the same, for example
# when the server cannot be reached: call lock.check, or ask lock.lost?. Keep the client's timeout below a third of the
# lease. Waiters are told by SSUBSCRIBE. That and renewing take connections of their own. Not for a Cluster.
#
# With limit: n the lock is taken beside at most n - 1 others that take it with a limit, with shared: true beside all that
# share it. lock.slot is then a number from 1 on that no other holder has.
module Holdfast
  class Busy < StandardError; end # somebody else has the lock
  class Lost < StandardError; end # the lease has ended, or the lock was taken away
  UNKNOWN = [Redis::BaseConnectionError, SystemCallError, IOError, # after these the call may have run
             *(RedisClient::ConnectionError if defined?(RedisClient))].freeze

  # Calls the block with the lock held, as a Lock, and returns what it returns. Waits in line for wait seconds at most
  # (nil: for ever, 0: not at all), and then raises Busy. The lease is in seconds. The end of the block gives the lock
  # back, and raises Lost if it was lost before that. After an exception nothing is held or waited for. An error of the
  # connection is raised after one repeat, and in line after a lease without an answer.
  def self.lock(redis, name, lease: 30, wait: nil, limit: nil, shared: false)
    lock = Lock.new(redis, "lock:#{name}", lease, [*(["LIMIT", limit] if limit), *("SHARED" if shared)])
    lock.send(:acquire, wait)
    yield lock
  rescue Exception => e
    lock&.send(:leave) unless e.is_a?(Lost)
    raise
  ensure
    lock&.send(:release) # also after break, return and throw
  end

  # A lock that is held. token is its fencing token, slot its number beside others (0: it is held alone).
  class Lock
    attr_reader :key, :owner, :token, :slot
    def initialize(redis, key, lease, beside = [])
      @redis, @key, @lease, @ttl, @slot = redis, key, lease, (lease * 1000).round, 0
      @asked = [@ttl, *beside]
      host = Socket.gethostname.gsub(/[^!-9;-~]/, "-")
      @owner = "#{host}:#{Process.pid}:#{SecureRandom.urlsafe_base64(12)}" # never used again
      @pid, @ends, @over, @gone, @polls, @line, @events, @channel = Process.pid, 0, false, nil, false, nil, nil, []
    end

    # Reports whether the lock was lost before its release. True before the lease can end at the server.
    def lost?
      @gone ||= "the lease has ended" if !@over && now >= @ends
      !!@gone
    end

    # Raises Lost if the lock is lost.
    def check = (raise Lost, "#{@key}: #{@gone}" if lost?)

    private
    # The clock goes on while the machine is suspended, where there is such a one.
    CLOCK = defined?(Process::CLOCK_BOOTTIME) ? Process::CLOCK_BOOTTIME : Process::CLOCK_MONOTONIC
    def now = Process.clock_gettime(CLOCK)
    # Returns an array: a token or 1, or a refusal: 0, pttl_ms, owner, waiters or position, why ...
    def call(redis, function, *args)
      sent = now
      reply = [*redis.call("FCALL", "holdfast_#{function}", 1, @key, @owner, *args)]
      raise IOError, "not a reply of the library: #{reply}" unless reply[0].is_a?(Integer)
      return reply if reply[0] == 0 || args.empty?
      @token, @slot = reply.size > 1 ? reply[1, 2] : [reply[0], @slot] # beside others it is 1, token, slot
      # The lease counts from before the request, less a margin for clocks that differ.
      @ends = sent + @lease * 0.99 - 0.002
      reply
    end
    def twice(function, *args)
      @redis.without_reconnect { call(@redis, function, *args) } # it would repeat it without a word
    rescue *UNKNOWN # by the same owner it is safe; the first release may have done what the second cannot
      reply = call(@redis, function, *args)
      function == "release" ? [1] : reply
    end

    def acquire(wait)
      ends = wait ? now + wait : Float::INFINITY
      reply, answered = twice("acquire", *@asked), now
      while reply[0] == 0
        raise Busy, "#{@key}: #{reply[4]} by #{reply[2].inspect} for #{reply[1]} ms" if now >= ends
        begin
          subscribe
          reply, answered = call(@redis, "wait", *@asked, *@channel), now
          listen(reply, ends) if reply[0] == 0
        rescue *UNKNOWN
          close
          raise if now >= [ends, answered + @lease].min
          sleep 0.1
        end
      end
      close
      @keeper = Thread.new(@redis.dup) { |redis| keep(redis) }
    end
    def release
      return if @over
      return leave unless @token # a wait that was thrown out of, as by Timeout.timeout
      lost?
      stop
      @gone ||= twice("release")[4] if mine?
      check
    end
    def mine? = Process.pid == @pid # a child of fork gives nothing back
    def leave # a grant that crosses with this goes on to the next in line
      stop
      twice("leave") if mine?
    rescue Redis::BaseError, *UNKNOWN then nil # its lease ends
    end
    def stop
      @over = true
      @keeper&.kill&.join
      close
    end

    def keep(redis, pause = @lease / 3.0)
      while sleep(pause) && !lost?
        reply = call(redis, "renew", @ttl, "FENCE", @token) rescue nil
        @gone = reply[4] if reply && reply[0] == 0
        pause = @lease / (reply ? 3.0 : 20.0)
      end
    ensure
      redis.close
    end

    def subscribe # by hand: redis-rb has it from 5 on, and does not return while it is subscribed
      name = "lock:{#{@key[/\A[^{]*\{([^}]+)\}/, 1] || @key}}:#{@owner}" # in the key's slot
      return if @line || @polls || name.bytesize > 512 # the most of a channel
      client = (@line = @redis.dup)._client
      @events = client.pubsub.tap { |pubsub| pubsub.call("SSUBSCRIBE", name) } if client.respond_to?(:pubsub)
      answer = @events ? message(5) : client.call([:ssubscribe, name])
      answer.is_a?(Array) ? @channel = ["CHANNEL", name] : @polls = true # an ACL
    rescue Redis::CommandError then @polls = true
    end

    # Waits until it is time to ask again: soon after a grant, whose lease is short until then.
    def listen((_, left, _, position, _, _, fence, subscribers), ends)
      told = position > 0 && subscribers > 0
      close unless told
      pause = told ? rand(1.0..1.5) : [rand(0.1..0.3), @lease / 2.0].min
      ends = [ends, now + (left < 0 ? pause : [pause, (left + 1) / 1000.0].min)].min
      while @line && now < ends
        kind, _, text = message([ends - now, 0.001].max)
        token, _, _, _, whose = text.b.split(" ", 5) if kind == "smessage"
        return if whose == "#{@owner} #{@key}".b && token.to_i > fence # an older one is void
      end
      sleep [ends - now, 0].max
    end
    def message(timeout)
      @events ? @events.next_event(timeout) : @line._client.with_socket_timeout(timeout) { @line._client.read }
    rescue Redis::TimeoutError then nil
    end
    def close
      [@events, @line].each { |c| c&.close }
      @line, @events, @channel = nil, nil, []
    end
  end
end
