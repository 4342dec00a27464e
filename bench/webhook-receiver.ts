import { createServer } from 'node:http';

/** Takes every delivery, and tells how many arrived and when the first and the last did (milliseconds of its own clock). */
let deliveries = 0;
let first = 0;
let last = 0;

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify({ deliveries, first, last }));
    return;
  }
  request.resume().on('end', () => {
    last = performance.now();
    if (deliveries++ === 0) first = last;
    response.end();
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
