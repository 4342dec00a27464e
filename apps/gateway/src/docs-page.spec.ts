import { chromium } from 'playwright-core';
import { operations } from '#libs/contracts/src/operation';
import { releaseVersion } from '#libs/platform/src/release';
import { givenProgram } from '#libs/testing/src/given-program';
import { rawExchange } from '#libs/testing/src/raw-http';
import { givenGateway, type GivenGateway } from './testing/given-gateway.ts';

const CHROMIUM = givenProgram('chromium', 'chromium-browser', 'google-chrome');

describe('the docs', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  it('are the OpenAPI document of the operations that have routes', async () => {
    const response = await fetch(`${gateway.url}/openapi.json`);
    const document = (await response.json()) as { openapi: string; paths: Record<string, unknown> };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toContain('/notes/{id}');
    const again = await fetch(`${gateway.url}/openapi.json`, { headers: { 'If-None-Match': response.headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('are the AsyncAPI document of what is announced', async () => {
    const response = await fetch(`${gateway.url}/asyncapi.json`);
    const document = (await response.json()) as { asyncapi: string; info: { version: string } };
    expect(document).toMatchObject({ asyncapi: '3.0.0', info: { version: releaseVersion() } });
  });

  it('are compressed for whoever takes that', async () => {
    for (const path of ['/openapi.json', '/asyncapi.json', '/docs', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css']) {
      const plain = await rawExchange(gateway.url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(plain!.headers).toMatchObject({ vary: 'Accept-Encoding' });
      expect(plain!.headers).not.toHaveProperty('content-encoding');
      for (const accepted of ['gzip', 'br, GZIP;q=0.5', '*', 'deflate, gzip ; q=1']) {
        const response = await fetch(gateway.url + path, { headers: { 'Accept-Encoding': accepted } });
        expect([accepted, response.headers.get('content-encoding')]).toEqual([accepted, 'gzip']);
        expect(Buffer.byteLength(await response.text())).toBe(Number(plain!.headers['content-length']));
        expect(Number(response.headers.get('content-length'))).toBeLessThan(Number(plain!.headers['content-length']));
        expect(response.headers.get('etag')).not.toBe(plain!.headers['etag']);
        const again = await fetch(gateway.url + path, { headers: { 'Accept-Encoding': accepted, 'If-None-Match': response.headers.get('etag')! } });
        expect([again.status, await again.text()]).toEqual([304, '']);
      }
      for (const refused of ['gzip;q=0', 'br', 'identity', 'gzip;q=0, *', 'x-gzipped'])
        expect((await fetch(gateway.url + path, { headers: { 'Accept-Encoding': refused } })).headers.get('content-encoding')).toBeNull();
    }
  });

  it('are where a browser is led that asks for nothing else', async () => {
    const browser = await fetch(`${gateway.url}/`, { redirect: 'manual', headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    expect([browser.status, browser.headers.get('location')]).toEqual([302, '/docs']);
    const program = await fetch(`${gateway.url}/`, { headers: { Accept: 'application/json' } });
    expect([program.status, ((await program.json()) as { code: string }).code]).toEqual([404, 'route_not_found']);
    const icon = await fetch(`${gateway.url}/favicon.ico`);
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  it('load nothing from elsewhere', async () => {
    for (const path of ['/docs', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/docs/start.js']) {
      const response = await fetch(gateway.url + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toContain('charset=utf-8');
      expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'self';/);
    }
    expect(await (await fetch(`${gateway.url}/docs`)).text()).not.toMatch(/https?:/);
  });

  (CHROMIUM === null ? it.skip : it)('show the operations in a browser, within their policy', async () => {
    const browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      const complaints: string[] = [];
      const elsewhere: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => !/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(gateway.url) && elsewhere.push(request.url()));
      page.on('response', (response) => response.status() >= 400 && complaints.push(`${response.status()} ${response.url()}`));
      await page.goto(`${gateway.url}/`);
      expect(page.url()).toBe(`${gateway.url}/docs`);
      const operation = page.locator('.opblock-summary', { hasText: 'Get a note by its label' });
      await operation.click();
      await page.locator('.opblock.is-open .opblock-body').waitFor();
      const shown = await page.locator('.opblock-summary-description').allTextContents();
      for (const { route, options } of operations()) if (route !== null) expect(shown).toContain(options.summary);
      expect(complaints).toEqual([]);
      expect(elsewhere).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
