<?php
// SPDX-License-Identifier: Apache-2.0
/*
 * A distributed lock on Redis 7 or Valkey: Holdfast's functions library over phpredis or Predis.
 *
 *     Holdfast\lock($redis, 'order:42', function (Holdfast\Lock $lock) use ($parts) {
 *         $lock->renew();                // before each step: throws Holdfast\Lost
 *         store($part, $lock->token);    // store refuses a token below one that it has seen
 *     }, lease: 30, wait: 10);
 *
 * The key is "lock:order:42", as the Go client's. PHP has no threads, so nothing renews the lock but renew(), which asks
 * the server once a third of the lease has passed, and not in its last third. A step that is longer than two thirds of
 * the lease loses the lock. Keep the client's read timeout below a third of the lease. Before 6.0 phpredis goes back to
 * database 0 when it connects again: use that one. With Predis, waiters are told by SSUBSCRIBE, on a connection of their
 * own. With phpredis they poll: before 6.0 it has no SSUBSCRIBE, since then none that says when it is subscribed. Not for
 * a Cluster.
 *
 * With limit: n the lock is taken beside at most n - 1 others that take it with a limit, with shared: true beside all that
 * share it. $lock->slot is then a number from 1 on that no other holder has.
 */
namespace Holdfast;
class Busy extends \RuntimeException {} // somebody else has the lock
class Lost extends \RuntimeException {} // the lease has ended, or the lock was taken away
class Refused extends \RuntimeException {} // an error reply of the server
function now(): float { return hrtime(true) / 1e9; } // monotonic

/**
 * Calls $work with the lock held, and returns what it returns. Waits in line for $wait seconds at most (0: not at all),
 * and then throws Busy. The lease is in seconds. Throws Lost if it was lost before $work ended. After an exception nothing
 * is held or waited for. An error of the connection is thrown after one repeat, in line after a lease without an answer.
 */
function lock(object $redis, string $name, callable $work, float $lease = 30, float $wait = INF, ?int $limit = null,
    bool $shared = false): mixed {
    $beside = [...($limit === null ? [] : ['LIMIT', $limit]), ...($shared ? ['SHARED'] : [])];
    $lock = new Lock($redis, "lock:$name", $lease, $beside);
    try {
        $lock->acquire(now() + $wait);
        $result = $work($lock);
        $lock->release();
        return $result;
    } finally {
        $lock->leave();
    }
}

/** A lock that is held. $token is its fencing token, $slot its number beside others (0: it is held alone). */
final class Lock {
    public readonly string $owner;
    public int $token = 0;
    public int $slot = 0;
    private int $pid;
    private array $state = ['ends' => 0, 'wall' => 0, 'due' => 0, 'over' => false, 'gone' => null]; // gone: why it is lost
    private $line = null, $stream = null, $channel = [];
    public function __construct(private object $redis, public readonly string $key, private float $lease,
        private array $beside = []) {
        $host = preg_replace('/[^!-9;-~]/', '-', gethostname());
        $random = strtr(base64_encode(random_bytes(12)), '+/', '-_');
        $this->pid = getmypid();
        $this->owner = "$host:$this->pid:$random"; // never used again
    }
    /** Says whether the lock was lost before its release: true before the lease can end at the server. */
    public function lost(): bool {
        $late = now() >= $this->state['ends'] || microtime(true) >= $this->state['wall']; // now() stands still in a suspend
        if (!$this->state['over'] && $late) $this->state['gone'] ??= 'the lease has ended';
        return $this->state['gone'] !== null;
    }
    /** Renews the lock, once a third of the lease has passed. Throws Lost if it is lost. */
    public function renew(): void {
        $last = $this->state['ends'] - $this->lease / 3; // a call that has no answer ends before the lease
        if (getmypid() === $this->pid && !$this->lost() && now() >= $this->state['due'] && now() < $last) { // no child of fork
            $this->state['due'] = now() + $this->lease / 20; // to try again after an error
            try {
                $this->state['gone'] = $this->call('renew', 'FENCE', $this->token)[4] ?? null;
            } catch (\Exception) {}
        }
        $this->lost() && throw new Lost("$this->key: {$this->state['gone']}");
    }
    /** @internal */
    public function acquire(float $until): void {
        [$reply, $answered] = [$this->twice('acquire'), now()];
        while ($reply[0] === 0) {
            if (now() >= $until) throw new Busy("$this->key: $reply[4] by $reply[2] for $reply[1] ms");
            try {
                $this->subscribe();
                [$reply, $answered] = [$this->call('wait', ...$this->channel), now()];
                if ($reply[0] === 0) $this->listen($reply, $until);
            } catch (\RedisException|\Predis\Connection\ConnectionException $e) {
                $this->close();
                if (now() >= min($until, $answered + $this->lease)) throw $e;
                usleep(100_000);
            }
        }
        $this->close();
    }
    /** @internal */
    public function release(): void {
        $this->renew();
        $this->state['over'] = true;
        $reply = $this->twice('release');
        $reply[0] === 0 && throw new Lost("$this->key: $reply[4]");
    }
    /** @internal A grant that crosses with this goes on to the next in line. */
    public function leave(): void {
        $this->close();
        try {
            $this->state['over'] || $this->state['gone'] || $this->twice('leave');
        } catch (\Exception) {} // its lease ends
        $this->state['over'] = true;
    }
    /** Returns a token or 1, or a refusal: 0, pttl_ms, owner, waiters or position, why ... */
    private function call(string $function, string|int ...$args): array {
        $takes = in_array($function, ['acquire', 'wait', 'renew']);
        if ($function === 'acquire' || $function === 'wait') array_push($args, ...$this->beside);
        if ($takes) array_unshift($args, (int) round($this->lease * 1000));
        [$sent, $date, $words] = [now(), microtime(true), ['FCALL', "holdfast_$function", 1, $this->key, $this->owner, ...$args]];
        $native = $this->redis instanceof \Redis;
        try {
            $db = $native ? $this->redis->getDbNum() : 0;
            if ($db) $this->redis->select($db); // before 6.0 phpredis forgets it when it connects again
            $reply = $native ? $this->redis->rawCommand(...$words) : $this->redis->executeRaw($words);
        } catch (\RedisException $e) {
            if (preg_match('/^[A-Z]{2,} /', $e->getMessage())) throw new Refused($e->getMessage());
            $this->redis->close(); // phpredis does not, and would take the late reply for the next one
            throw $e;
        }
        if (!is_array($reply) && !is_int($reply)) throw new Refused($native ? (string) $this->redis->getLastError() : $reply);
        $reply = (array) $reply;
        if ($reply[0] !== 0 && $takes) { // the lease counts from before the request, less a margin for other clocks
            [$this->token, $this->slot] = count($reply) > 1 ? [$reply[1], $reply[2]] : [$reply[0], $this->slot]; // 1, token, slot
            $this->state['ends'] = $sent + $this->lease * 0.99 - 0.002;
            $this->state['wall'] = $date + $this->lease * 0.99 - 0.002;
            $this->state['due'] = $sent + $this->lease / 3;
        }
        return $reply;
    }
    private function twice(string $function): array {
        if (getmypid() !== $this->pid) return [1]; // a child of fork gives nothing back
        try {
            return $this->call($function);
        } catch (\RedisException|\Predis\Connection\ConnectionException) { // by the same owner a repeat is safe
            $reply = $this->call($function);
            return $function === 'release' ? [1] : $reply; // the first one may have given it back
        }
    }
    private function subscribe(): void {
        $tag = preg_match('/^[^{]*{([^}]+)}/', $this->key, $match) ? $match[1] : $this->key; // in the key's slot
        $name = "lock:{{$tag}}:$this->owner";
        if ($this->line || $this->redis instanceof \Redis || strlen($name) > 512) return; // the most of a channel
        $server = $this->redis->getConnection();
        if (method_exists($server, 'getMaster')) $server = $server->getMaster(); // of Sentinel, or with replicas
        $this->line = new \Predis\Client(['persistent' => false] + $server->getParameters()->toArray()); // else it is ours
        $told = is_array($this->line->executeRaw(['SSUBSCRIBE', $name]));
        $stream = $this->line->getConnection()->getResource();
        $this->stream = is_resource($stream) ? $stream : $stream->detach(); // of Predis 3
        $this->channel = $told ? ['CHANNEL', $name] : [];
    }
    /** Waits until it is time to ask again: soon after a grant, whose lease is short until then. */
    private function listen(array $reply, float $until): void {
        [, $left, , $position, , , $fence, $subscribers] = $reply;
        $grant = '/\r\n(\d+) \d+ \d+ \d+ ' . preg_quote("$this->owner $this->key", '/') . '\r/';
        $told = $position > 0 && $subscribers > 0;
        $pause = $told ? mt_rand(1000, 1500) : min(mt_rand(100, 300), $this->lease * 500);
        $until = min($until, now() + min($pause, $left < 0 ? $pause : $left + 1) / 1000);
        $told || !$this->channel || $this->close(); // who may not subscribe does not try again
        for ($text = ''; $told && ($pause = $until - now()) > 0; $told = !feof($this->stream)) {
            [$read, $none] = [[$this->stream], null];
            $text .= stream_select($read, $none, $none, 0, (int) ($pause * 1e6)) ? fread($this->stream, 8192) : '';
            preg_match_all($grant, $text, $grants);
            if (max([0, ...$grants[1]]) > $fence) return; // an older one is void
        }
        usleep((int) max(0, ($until - now()) * 1e6));
    }
    private function close(): void {
        $this->line?->disconnect();
        is_resource($this->stream) && fclose($this->stream);
        [$this->line, $this->stream, $this->channel] = [null, null, []];
    }
}
