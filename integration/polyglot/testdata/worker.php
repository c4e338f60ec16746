<?php
// SPDX-License-Identifier: Apache-2.0

require __DIR__ . '/../php/holdfast.php';

[, $library, $host, $port, $mode, $name, $lease, $wait] = $argv;
$timeout = $lease / 4000; // below a third of the lease, for a busy machine
if ($library === 'predis') {
    require 'Predis/Autoloader.php';
    Predis\Autoloader::register();
    $redis = new Predis\Client([['host' => $host, 'port' => (int) $port, 'timeout' => $timeout, 'read_write_timeout' => $timeout,
        'alias' => 'master', 'persistent' => true]], ['replication' => true]); // a waiter's own connection is neither
} else {
    $redis = new Redis();
    $redis->connect($host, (int) $port, $timeout, null, 0, $timeout);
}
$terms = ['lease' => $lease / 1000, 'wait' => $wait === '-1' ? INF : $wait / 1000,
    'limit' => getenv('LIMIT') ? (int) getenv('LIMIT') : null, 'shared' => (bool) getenv('SHARED')];

function hold(Holdfast\Lock $lock): void
{
    if (!pcntl_fork()) return;
    pcntl_wait($status);
    echo "held $lock->token $lock->slot\n";
    do {
        $lock->renew();
        [$in, $none] = [[STDIN], null];
    } while (!stream_select($in, $none, $none, 0, 10_000));
}

try {
    if ($mode === 'hold') {
        $pid = getmypid();
        Holdfast\lock($redis, $name, 'hold', ...$terms);
        if (getmypid() === $pid) echo "released\n";
    }
    for ($i = 0; $mode === 'work' && $i < (int) $argv[9]; $i++) {
        Holdfast\lock($redis, $name, function (Holdfast\Lock $lock) use ($redis, $argv) {
            $n = (int) $redis->get($argv[8]);
            $lock->renew();
            $redis->set($argv[8], $n + 1);
            echo "$lock->token\n";
        }, ...$terms);
    }
} catch (Holdfast\Busy) {
    echo "busy\n";
} catch (Holdfast\Lost) {
    echo "lost\n";
}
