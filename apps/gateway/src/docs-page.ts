import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asyncApiDocument } from '#libs/contracts/src/asyncapi';
import { openApiDocument } from '#libs/contracts/src/openapi';
import { releaseVersion } from '#libs/platform/src/release';
import { noSuchPath, refusal, send } from './http-answer.ts';

const require = createRequire(import.meta.url);

/** Everything comes from this server; swagger-ui sets styles and draws its icons from `data:`. */
const POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Gatehouse API</title>
    <link rel="icon" href="/docs/favicon-32x32.png">
    <link rel="stylesheet" href="/docs/swagger-ui.css">
  </head>
  <body>
    <div id="api"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

/** A file of its own, since the policy allows no inline script. Without a validator nothing is sent to another host. */
const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#api', validatorUrl: null, deepLinking: true, displayRequestDuration: true });\n`;

const ICON = 'favicon-32x32.png';
const ASSETS: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  [ICON]: 'image/png',
};

/** The OpenAPI document and the page that shows it, served from the installed package, and the AsyncAPI document. Made when somebody asks: most processes never show it. */
@Injectable()
export class DocsPage {
  mount(scope: FastifyInstance): void {
    serve(scope, '/openapi.json', 'application/json; charset=utf-8', () => JSON.stringify(openApiDocument(releaseVersion())));
    serve(scope, '/asyncapi.json', 'application/json; charset=utf-8', () => JSON.stringify(asyncApiDocument(releaseVersion())));
    serve(scope, '/docs', 'text/html; charset=utf-8', () => PAGE);
    serve(scope, '/docs/start.js', 'text/javascript; charset=utf-8', () => START);
    const folder = dirname(require.resolve('swagger-ui-dist/package.json'));
    for (const [name, type] of Object.entries(ASSETS)) serve(scope, `/docs/${name}`, type, () => readFileSync(join(folder, name)));
    // Browsers ask for it wherever they are.
    serve(scope, '/favicon.ico', ASSETS[ICON]!, () => readFileSync(join(folder, ICON)));
    scope.get('/', leadToDocs);
  }
}

/** Whoever looks at the address in a browser is shown what there is; a program that has forgotten its path is told so. */
function leadToDocs(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('Vary', 'Accept');
  if (request.headers.accept?.includes('text/html')) reply.redirect('/docs');
  else send(reply, refusal(noSuchPath())!);
}

const compress = promisify(gzip);

interface Made {
  readonly content: string | Buffer;
  readonly compressed: Buffer;
  readonly tag: string;
}

async function madeOf(content: string | Buffer): Promise<Made> {
  return { content, compressed: await compress(content), tag: hash('sha256', content, 'base64url').slice(0, 22) };
}

/** Sends it once; afterwards the browser asks whether it has changed. It is made and compressed once for everybody. */
function serve(scope: FastifyInstance, path: string, type: string, make: () => string | Buffer): void {
  let made: Promise<Made> | undefined;
  scope.get(path, async (request, reply) => {
    const { content, compressed, tag } = await (made ??= madeOf(make()));
    const isCompressed = takesGzip(request.headers['accept-encoding']);
    const etag = `"${tag}${isCompressed ? '-gzip' : ''}"`;
    reply.headers({
      ETag: etag,
      Vary: 'Accept-Encoding',
      'Cache-Control': 'no-cache',
      'Content-Security-Policy': POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
    });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    if (isCompressed) reply.header('Content-Encoding', 'gzip');
    return reply.header('Content-Type', type).send(isCompressed ? compressed : content);
  });
}

/** `gzip, br;q=0.9`, or `*`; with `q=0` it is refused. */
function takesGzip(accepted: string | string[] | undefined): boolean {
  const codings = String(accepted ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => /^\s*([\w*-]+)\s*(?:;\s*q=([\d.]+))?\s*$/.exec(coding));
  const named = codings.find((coding) => coding?.[1] === 'gzip') ?? codings.find((coding) => coding?.[1] === '*');
  return named !== undefined && named !== null && Number(named[2] ?? 1) > 0;
}
