#!/usr/bin/php
<?php
/* Driver for the clients of PHP; see README.md. */
declare(strict_types=1);

function place(string $address): array
{
    return $address[0] === '/' ? [$address, 0] : [strtok($address, ':'), (int) strtok(':')];
}

function phpredis(string $address): array
{
    [$host, $port] = place($address);
    $c = new Redis();
    $c->connect($host, $port);
    $told = function ($value) use ($c) {
        $error = $c->getLastError();
        $c->clearLastError();
        return $value === false && $error !== null ? (object) ['b' => "false $error"] : $value;
    };
    return [
        'get' => fn ($key) => $c->get($key),
        'mget' => fn (...$keys) => $c->mget($keys),
        'lpop' => fn ($key, $n) => $c->rawCommand('LPOP', $key, $n),
        'incr' => fn ($key) => $c->incr($key),
        'set' => fn ($key, $value) => $told($c->set($key, $value)),
    ];
}

function predis(string $address): array
{
    require 'Predis/autoload.php';
    $c = new Predis\Client($address[0] === '/' ? "unix:$address" : "tcp://$address");
    return [
        'get' => fn ($key) => $c->get($key),
        'mget' => fn (...$keys) => $c->mget($keys),
        'lpop' => fn ($key, $n) => $c->executeRaw(['LPOP', $key, $n]),
        'incr' => fn ($key) => $c->incr($key),
        'set' => fn ($key, $value) => (string) $c->set($key, $value),
    ];
}

function memcached(string $address, bool $binary): array
{
    $c = new Memcached();
    if ($binary) {
        $c->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
    }
    $c->addServer(...place($address));
    return [
        'get' => fn ($key) => $c->get($key),
        'mget' => function (...$keys) use ($c) {
            $found = $c->getMulti($keys) ?: [];
            return array_map(fn ($key) => $found[$key] ?? null, $keys);
        },
        'incr' => fn ($key) => $c->increment($key),
        'set' => fn ($key, $value) => $c->set($key, $value)
            ?: (object) ['b' => 'false ' . $c->getResultMessage()],
    ];
}

/* It leaves a server alone for 15 s that has closed a connection; here for 1, to save time. */
function memcache(string $address): array
{
    [$host, $port] = place($address);
    $c = new Memcache();
    $c->addServer($port ? $host : "unix://$host", $port, true, 1, 1, 1);
    return [
        'get' => fn ($key) => $c->get($key),
        'mget' => function (...$keys) use ($c) {
            $found = $c->get($keys) ?: [];
            return array_map(fn ($key) => $found[$key] ?? null, $keys);
        },
        'incr' => fn ($key) => $c->increment($key),
        'set' => fn ($key, $value) => $c->set($key, $value) ?: (object) ['b' => 'false'],
    ];
}

const CLIENTS = ['phpredis' => 'phpredis', 'predis' => 'predis', 'memcache' => 'memcache'];

/* PHP's clients say false where others say null. */
function field($value): string
{
    return match (true) {
        $value === null, $value === false => 'n:',
        $value === true => 'b:true',
        is_object($value) => 'b:' . $value->b,
        is_int($value) => "i:$value",
        is_float($value) => "f:$value",
        default => "s:$value",
    };
}

function answer(callable $verb, array $args): string
{
    try {
        $value = $verb(...$args);
    } catch (Throwable $e) {
        return 'e:' . get_class($e) . ' ' . preg_replace('/\s+/', ' ', $e->getMessage());
    }
    return implode("\t", array_map('field', is_array($value) ? $value : [$value]));
}

ini_set('display_errors', 'stderr');
[, $name, $address] = $argv;
$verbs = isset(CLIENTS[$name]) ? CLIENTS[$name]($address) : memcached($address, $name === 'memcached-binary');
while (($line = fgets(STDIN)) !== false) {
    $args = explode(' ', trim($line));
    echo answer($verbs[array_shift($args)], $args), "\n";
}
