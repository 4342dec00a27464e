import { withOwnAddress } from './own-address.ts';

describe('the address that the one process tells of', () => {
  it.each([
    ['the port that it listens on', { PORT: '3100' }, 'http://localhost:3100'],
    ['that of the default port', {}, 'http://localhost:3000'],
    ['what it is told', { PORT: '3100', PUBLIC_URL: 'https://api.acme.test' }, 'https://api.acme.test'],
    ['the port, where it is told nothing but white space', { PORT: '3100', PUBLIC_URL: ' ' }, 'http://localhost:3100'],
    ['nothing of its own in production', { PORT: '3100', GATEHOUSE_MODE: 'production' }, undefined],
    ['nothing of its own where the system chooses the port', { PORT: '0' }, undefined],
  ])('is %s', (_, variables, address) => {
    expect(withOwnAddress(variables)['PUBLIC_URL']).toBe(address);
  });
});
