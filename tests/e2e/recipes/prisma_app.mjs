/* An application with Prisma; it does what rows.py says, with promises for threads. */
import { fork } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaLibSQL } from '@prisma/adapter-libsql';
import { PrismaClient } from '@prisma/client';
import { closeIds, nextId, sidflake, sidflakeJson } from './prisma_ids.mjs';

const BEFORE = 40;
const CHILDREN = 3;
const THREADS = 3;
const ROWS = 40;
const AT_ONCE = 4; // rows of one createMany
const PATIENCE_MS = 45000;

// libSQL does not wait for a file that others write to.
async function patient(write) {
    for (const till = Date.now() + PATIENCE_MS; ; await sleep(5)) {
        try {
            return await write();
        } catch (error) {
            if (!/SQLITE_BUSY|locked|timeout/i.test(`${error.message} ${JSON.stringify(error.meta)}`) ||
                Date.now() > till) throw error;
        }
    }
}

function client(database) {
    const adapter = new PrismaLibSQL({ url: `file:${database}`, intMode: 'bigint' });
    return new PrismaClient({ adapter }).$extends(sidflake({ Order: 'orders' }));
}

async function inThreads(insert) {
    await Promise.all(Array.from({ length: THREADS }, async () => {
        for (let i = 0; i < ROWS; i += AT_ONCE) await insert();
    }));
}

async function halves(insert, go) {
    await inThreads(insert);
    for (const till = Date.now() + PATIENCE_MS; !existsSync(go); await sleep(20)) {
        if (Date.now() > till) throw new Error('no sign to go on');
    }
    await inThreads(insert);
}

function child(database, go) {
    return new Promise((done, failed) => {
        fork(process.argv[1], [database, go]).on('exit', (status) => {
            if (status === 0) done();
            else failed(new Error(`a child failed: ${status}`));
        });
    });
}

async function main() {
    const [database, go, json] = process.argv.slice(2);
    const prisma = client(database);
    await prisma.$queryRawUnsafe('PRAGMA synchronous = OFF'); // rows are what is looked at, not disks
    const row = { total: 7 };
    const insert = () => patient(() => prisma.order.createMany({ data: Array(AT_ONCE).fill(row) }));
    if (json) {
        await patient(() => prisma.$executeRawUnsafe(
            'CREATE TABLE orders (id BIGINT PRIMARY KEY, total INTEGER NOT NULL)'));
        for (let i = 0; i < BEFORE; i++) await patient(() => prisma.order.create({ data: row }));
        const children = Array.from({ length: CHILDREN }, () => child(database, go));
        await Promise.all([halves(insert, go), ...children]);
        writeFileSync(json, sidflakeJson(await prisma.order.findMany()));
    } else {
        await halves(insert, go);
    }
    await prisma.$disconnect();
}

if (process.argv.length > 2) {
    await main();
} else {
    for await (const _ of createInterface({ input: process.stdin })) {
        try {
            console.log(`id ${await nextId('orders')}`);
        } catch (error) {
            console.log(`error ${error.name} ${error.message}`);
        }
    }
}
closeIds();
