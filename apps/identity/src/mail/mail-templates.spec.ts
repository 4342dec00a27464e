import { letterOf } from './mail-templates.ts';

describe('a message shows no name as a link, wherever it stands', () => {
  it.each([
    ['https://evil.test/login', 'https: //evil․test/login'],
    ['HTTP://evil.test', 'HTTP: //evil․test'],
    ['mailto:eve@evil.test', 'mailto: eve@ evil․test'],
    ['Look at www.evil.test.', 'Look at www․evil․test.'],
    ['evil。test ｅvil．test evil｡test', 'evil․test ｅvil․test evil․test'],
    ['evil\u200b.\u2060test https:\u200b//evil', 'evil․test https: //evil'],
    ['192.0.2.1', '192․0․2․1'],
    ['J.R. Smith Inc.', 'J․R. Smith Inc.'],
  ])('%s', (name, shown) => {
    const brand = { name: 'Acme', logo_url: null, color: null };
    const secret = { link: 'https://app.acme.test/invite' };
    const { subject, text, html } = letterOf({ kind: 'invitation', secret, time: 7, locale: 'en', brand, invited: { organization: name, inviter: name } });
    expect(subject).toBe(`You are invited to ${shown} on Acme`);
    for (const body of [text, html]) expect(body).toContain(`${shown} invites you to join ${shown} on Acme.`);
    expect([...text.matchAll(/https?:\/\/\S+|\w[.@]\w+/g)].map(([link]) => link)).toEqual([secret.link]);
  });
});
