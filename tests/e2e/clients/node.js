/* Driver for the clients of Node; see README.md. */
'use strict';

const readline = require('node:readline');

console.log = console.error; /* memjs has things to say; standard output has the answers */

function place(address) {
    const [host, port] = address.split(':');
    return port ? { host, port: Number(port) } : { path: address };
}

function quietly(client) {
    client.on('error', () => {}); /* told by the request that fails, too */
    return client;
}

function ioredis(module) {
    return (address) => {
        const Redis = require(module);
        const client = quietly(new Redis(place(address)));
        return {
            get: (key) => client.get(key),
            mget: (...keys) => client.mget(...keys),
            lpop: (key, n) => client.lpop(key, n),
            incr: (key) => client.incr(key),
            set: (key, value) => client.set(key, value),
            exact: (key) => quietly(new Redis({ ...place(address), stringNumbers: true })).incr(key),
        };
    };
}

/* Of 4, 5 and 6: exact(client) has integers as strings where there is a way. */
function redis(module, exact) {
    return async (address) => {
        const lib = require(module);
        const client = await quietly(lib.createClient({ socket: place(address) })).connect();
        return {
            get: (key) => client.get(key),
            mget: (...keys) => client.mGet(keys),
            lpop: (key, n) => client.lPopCount(key, Number(n)),
            incr: (key) => client.incr(key),
            set: (key, value) => client.set(key, value),
            exact: exact && ((key) => exact(lib, address, key)),
        };
    };
}

async function mapped(lib, address, key) {
    const commandOptions = { typeMapping: { [lib.RESP_TYPES.NUMBER]: String } };
    const client = quietly(lib.createClient({ socket: place(address), commandOptions }));
    return (await client.connect()).incr(key);
}

function promised(client, method) {
    return (...args) => new Promise((resolve, reject) => {
        client[method](...args, (error, value) => (error ? reject(error) : resolve(value)));
    });
}

function redis3(address) {
    const lib = require('redis3');
    const client = quietly(lib.createClient(place(address)));
    const strings = (key) => promised(quietly(
        lib.createClient({ ...place(address), string_numbers: true })), 'incr')(key);
    return {
        get: promised(client, 'get'),
        mget: promised(client, 'mget'),
        lpop: promised(client, 'lpop'),
        incr: promised(client, 'incr'),
        set: promised(client, 'set'),
        exact: strings,
    };
}

async function glide(address) {
    const { GlideClient, Logger } = require('@valkey/valkey-glide');
    Logger.setLoggerConfig('off'); /* it goes to standard output */
    const client = await GlideClient.createClient({ addresses: [place(address)] });
    return {
        get: (key) => client.get(key),
        mget: (...keys) => client.mget(keys),
        lpop: (key, n) => client.lpopCount(key, Number(n)),
        incr: (key) => client.incr(key),
        set: (key, value) => client.set(key, value),
    };
}

function memjs(address) {
    const client = require('memjs').Client.create(address);
    return {
        get: async (key) => (await client.get(key)).value,
        incr: async (key) => (await client.increment(key, 1, {})).value,
        set: (key, value) => client.set(key, value, {}),
    };
}

function memcached(address) {
    const client = new (require('memcached'))(address);
    const getMulti = promised(client, 'getMulti');
    const set = promised(client, 'set');
    return {
        get: promised(client, 'get'),
        mget: async (...keys) => {
            const found = await getMulti(keys);
            return keys.map((key) => found[key]);
        },
        incr: (key) => promised(client, 'incr')(key, 1),
        set: (key, value) => set(key, value, 0),
    };
}

function memcacheClient(address) {
    const { MemcacheClient } = require('memcache-client');
    const client = new MemcacheClient({ server: { server: address } });
    const value = async (key) => (await client.get(key))?.value;
    return {
        get: value,
        mget: async (...keys) => {
            const found = await client.get(keys);
            return keys.map((key) => found[key]?.value);
        },
        incr: (key) => client.incr(key, 1),
        set: async (key, text) => (await client.set(key, text), 'OK'),
    };
}

function memcachePlus(address) {
    const client = new (require('memcache-plus'))(address);
    return {
        get: (key) => client.get(key),
        mget: async (...keys) => {
            const found = await client.getMulti(keys);
            return keys.map((key) => found[key]);
        },
        incr: (key) => client.incr(key, 1),
        set: async (key, value) => (await client.set(key, value), 'OK'),
    };
}

const CLIENTS = {
    'ioredis4': ioredis('ioredis4'),
    'ioredis5': ioredis('ioredis'),
    'ioredis6': ioredis('ioredis6'),
    'redis3': redis3,
    'redis4': redis('redis4'),
    'redis5': redis('redis5', mapped),
    'redis6': redis('redis', mapped),
    'glide': glide,
    'memjs': memjs,
    'memcache-client': memcacheClient,
    'memcache-plus': memcachePlus,
    'memcached': memcached,
};

function field(value) {
    if (value === null || value === undefined)
        return 'n:';
    if (typeof value === 'number')
        return (Number.isSafeInteger(value) ? 'i:' : 'f:') + value;
    return (typeof value === 'boolean' ? 'b:' : 's:') + value;
}

async function answer(verb, args) {
    try {
        const value = await verb(...args);
        return (Array.isArray(value) ? value : [value]).map(field).join('\t');
    } catch (e) {
        return 'e:' + String(e).replace(/\s+/g, ' ');
    }
}

async function main(name, address) {
    const verbs = await CLIENTS[name](address);
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [verb, ...args] = line.split(' ');
        process.stdout.write((await answer(verbs[verb], args)) + '\n');
    }
    process.exit(0);
}

main(process.argv[2], process.argv[3]);
