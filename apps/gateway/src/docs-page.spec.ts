import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { operations } from '#libs/contracts/src/operation';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { releaseVersion } from '#libs/platform/src/release';
import { givenGateway, type GivenGateway } from './given-gateway.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path));

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

  it('load nothing from elsewhere', async () => {
    for (const path of ['/docs', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/docs/start.js']) {
      const response = await fetch(gateway.url + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toContain('charset=utf-8');
      expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'self';/);
    }
    expect(await (await fetch(`${gateway.url}/docs`)).text()).not.toMatch(/https?:/);
  });

  it('show the operations in a browser, within their policy', async () => {
    if (CHROMIUM === undefined) {
      console.warn('No Chromium found: the docs page was NOT looked at in a browser.');
      // Where everything must be checked, silence would be a lie.
      const { CI, BROWSER } = environmentVariables();
      expect({ CI, BROWSER }).toEqual({});
      return;
    }
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      const complaints: string[] = [];
      const elsewhere: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => !/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(gateway.url) && elsewhere.push(request.url()));
      await page.goto(`${gateway.url}/docs`);
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
