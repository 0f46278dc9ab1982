/*
 * BIGINT primary keys from sidflake for Prisma 6, with ioredis.
 *
 *     model Order {
 *       id    BigInt @id
 *       total Int
 *       @@map("orders")
 *     }
 *
 *     const prisma = new PrismaClient({ ... }).$extends(sidflake({ Order: 'orders' }));
 *     await prisma.order.create({ data: { total: 7 } });
 *
 * The key of a row is set before it is inserted, from `id:` and the name that its model is given here. A
 * model that is not named keeps the keys that it comes with. Rows that are written as a part of another one
 * (`create` within `data`) pass by here: give them `id: await nextId('items')`. Prisma's types want an id in
 * `data`; in TypeScript pass `id: await nextId('orders')` yourself, or make it optional there.
 *
 * Keys are BigInt, which JSON.stringify refuses: sidflakeJson below writes them as strings, since JavaScript
 * rounds such numbers.
 */
import { Redis } from 'ioredis';

const BATCH = 100;
const KEEP_MS = 1000; // an ID has the time of its batch: what is left of an older one is thrown away
const PATIENCE_MS = 10000; // a sidecar that restarts is waited for

const url = process.env.IDS_URL ?? 'redis://127.0.0.1:6380'; // or unix:///PATH
const where = url.startsWith('unix://') ? url.slice('unix://'.length) : url;

// Errors and -LOADING are dealt with below, so ioredis is neither to ask again nor to look first.
const redis = new Redis(where, {
    lazyConnect: true,
    connectTimeout: 1000,
    commandTimeout: 2000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 50,
    enableReadyCheck: false,
    disableClientInfo: true,
});
redis.on('error', () => {}); // each request has its own

const left = new Map(); // name => { ids, until } of a batch
const taking = new Map(); // name => a batch that is being taken

const sleep = (ms) => new Promise((wake) => { setTimeout(wake, ms); });

// Whether to ask again: no connection, no answer, -LOADING and -TRYAGAIN.
function passes(error) {
    return error.name !== 'ReplyError' || /^(LOADING|TRYAGAIN)/.test(error.message);
}

// To ask again does no harm: IDs whose reply was lost are never given to others.
async function take(name) {
    const till = Date.now() + PATIENCE_MS;
    for (let pause = 50; ; pause = Math.min(2 * pause, 1000)) {
        try {
            const ids = await redis.lpop(`id:${name}`, BATCH);
            if (!ids?.length) break;
            left.set(name, { ids, until: performance.now() + KEEP_MS });
            return;
        } catch (error) {
            if (!passes(error) || Date.now() + pause > till) throw error;
        }
        await sleep(pause);
    }
    throw new Error('no IDs: is it sidflake that listens at IDS_URL?');
}

/* A fresh ID, a BigInt. All who find no batch wait for the same one. */
export async function nextId(name) {
    for (;;) {
        const batch = left.get(name);
        if (batch?.ids.length && performance.now() <= batch.until) return BigInt(batch.ids.shift());
        if (!taking.has(name)) taking.set(name, take(name).finally(() => taking.delete(name)));
        await taking.get(name);
    }
}

/* An extension of a Prisma client; names: of models, what follows `id:` for each. */
export function sidflake(names) {
    const keyed = async (name, row) => ({ ...row, id: row.id ?? await nextId(name) });
    const one = async ({ model, args, query }) => query(
        names[model] ? { ...args, data: await keyed(names[model], args.data) } : args);
    const many = async ({ model, args, query }) => query(
        names[model]
            ? { ...args, data: await Promise.all([args.data].flat().map((r) => keyed(names[model], r))) }
            : args);
    const either = async ({ model, args, query }) => query(
        names[model] ? { ...args, create: await keyed(names[model], args.create) } : args);
    return {
        query: {
            $allModels: { create: one, createMany: many, createManyAndReturn: many, upsert: either },
        },
    };
}

/* JSON.stringify, with keys as strings. */
export function sidflakeJson(value) {
    return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? v.toString() : v));
}

/* At the end of a program, which an open connection would keep from ending. */
export function closeIds() {
    redis.disconnect();
}
