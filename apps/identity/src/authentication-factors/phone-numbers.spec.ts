import { phoneNumberOf } from './phone-numbers.ts';

describe('a number for texts', () => {
  it.each([
    ['+4915112345678', '+4915112345678', 'DE'],
    [' +49 (0)151 123-456 78 ', '+4915112345678', 'DE'],
    ['+４９15112345678', '+4915112345678', 'DE'],
    ['+1 (202) 555-0143', '+12025550143', 'US'],
    // The calling code of the United States, and the prices of Jamaica.
    ['+18762101234', '+18762101234', 'JM'],
    ['+77012345678', '+77012345678', 'KZ'],
    ['+870773111632', '+870773111632', null],
  ])('%j is %s', (given, number, country) => expect(phoneNumberOf(given)).resolves.toEqual({ number, country }));

  it.each([
    ...['015112345678', '004915112345678', '+004915112345678', '+49', '+49151', '+999123456789', '+4915112345678;ext=5', 'tel:+4915112345678', 'call me', ''],
    ...['+4915112345678, +18762101234', '+49 151 12345678 x9', '+4915112345678\n+18762101234'],
  ])('%j is none', async (given) => {
    await expect(phoneNumberOf(given)).rejects.toEqual(
      expect.objectContaining({ details: { errors: [expect.objectContaining({ field: 'phone_number', code: 'invalid' })] } }),
    );
  });

  it.each([
    ['of premium rate', '+449012345678'],
    ['that leads elsewhere, at a price', '+447012345678'],
    ['that is free to call', '+18002345678'],
    ['of a desk', '+442079460000'],
  ])('is none %s', async (_, given) => {
    await expect(phoneNumberOf(given)).rejects.toEqual(expect.objectContaining({ details: { errors: [expect.objectContaining({ code: 'not_mobile' })] } }));
  });
});
