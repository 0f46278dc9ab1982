/*
 * A subscriber and a client of IDs with ioredis, until it is killed: node subscriber.js PORT
 *
 * Prints "message DATA" for each message on the channel news, and "id" for each ID.
 */
'use strict';

const Redis = require('ioredis');
const place = { host: '127.0.0.1', port: Number(process.argv[2]) };
const subscriber = new Redis(place);
const other = new Redis(place);

for (const client of [subscriber, other])
    client.on('error', () => {});
subscriber.on('message', (channel, data) => console.log(`message ${data}`));
subscriber.subscribe('news');
setInterval(() => other.get('id:orders').then(() => console.log('id')), 50);
