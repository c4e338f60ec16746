<?php
[, $host, $port, $mode] = $argv;
$rest = array_slice($argv, 4);
$r = new Redis();
$r->connect($host, (int) $port);

function work(Redis $r, string $lock, string $counter, string $name, int $rounds): void
{
    for ($i = 0; $i < $rounds; $i++) {
        $owner = "$name $i";
        while (($got = $r->rawCommand('FCALL', 'holdfast_wait', 1, $lock, $owner, 30000, ''))[0] === 0) {
            usleep(2000);
        }
        $r->set($counter, (int) $r->get($counter) + 1);
        echo $got[1], "\n";
        if ($r->rawCommand('FCALL', 'holdfast_release', 1, $lock, $owner) !== [1, 0]) {
            exit("lost the lock\n");
        }
    }
}

if ($mode === 'call') {
    echo implode("\n", $r->rawCommand('FCALL', $rest[0], 1, ...array_slice($rest, 1))), "\n";
} else {
    work($r, $rest[0], $rest[1], $rest[2], (int) $rest[3]);
}
