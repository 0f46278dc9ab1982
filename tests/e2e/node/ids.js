/*
 * Asks a sidecar for IDs with a real client, over RESP.
 *
 *   node ids.js CLIENT ADDRESS COUNT     CLIENT: a key of the table below; ADDRESS: a port on
 *                                        127.0.0.1, or the path of a socket
 *
 * Prints one JSON line for each command: {"op", "ids": [strings], "sent", "received"}, times in
 * Unix ms. A client that rounds integers prints what it makes of an INCR as {"op": "rounded"}.
 */
'use strict';

const KEY = 'id:orders';
const BATCH = 100;

function place(address) {
    return /^\d+$/.test(address) ? { host: '127.0.0.1', port: Number(address) } : { path: address };
}

/* Existing URLs often carry a password. */
function credentials() {
    const { ID_USER: username, ID_PASSWORD: password } = process.env;
    return password ? { username, password } : {};
}

function ioredis(name) {
    return async (address) => {
        const Redis = require(name);
        const options = { ...place(address), ...credentials(), stringNumbers: true, maxRetriesPerRequest: 1 };
        const client = new Redis(options);
        return {
            get: () => client.get(KEY),
            incr: () => client.incr(KEY),
            lpop: () => client.lpop(KEY, BATCH),
            close: () => client.quit(),
        };
    };
}

async function nodeRedis(address) {
    const { createClient, RESP_TYPES } = require('redis');
    const client = await createClient({ socket: place(address), ...credentials() }).connect();
    const exact = client.withTypeMapping({ [RESP_TYPES.NUMBER]: String });
    return {
        get: () => client.get(KEY),
        incr: () => exact.incr(KEY),
        lpop: () => client.lPopCount(KEY, BATCH),
        close: () => client.close(),
    };
}

/* Has no way to keep an integer exact. */
async function nodeRedis4(address) {
    const { createClient } = require('redis4');
    const client = await createClient({ socket: place(address), ...credentials() }).connect();
    return {
        get: () => client.get(KEY),
        rounded: () => client.incr(KEY),
        lpop: () => client.lPopCount(KEY, BATCH),
        close: () => client.quit(),
    };
}

const CLIENTS = {
    'ioredis': ioredis('ioredis'),
    'ioredis6': ioredis('ioredis6'),
    'redis': nodeRedis,
    'redis4': nodeRedis4,
};

async function main(name, address, count) {
    const client = await CLIENTS[name](address);
    for (let i = 0; i < count; i++) {
        for (const op of Object.keys(client).filter((k) => k !== 'close')) {
            const sent = Date.now();
            const reply = await client[op]();
            const received = Date.now();
            const ids = (Array.isArray(reply) ? reply : [reply]).map(String);
            console.log(JSON.stringify({ op, ids, sent, received }));
        }
    }
    await client.close();
}

main(process.argv[2], process.argv[3], Number(process.argv[4])).catch((e) => {
    console.error(e);
    process.exit(1);
});
